"""Run the steps of a plan. The output of a step is reused until something that it depends on changes."""

from __future__ import annotations

import itertools
import json
import logging
import random
import shutil
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from r2med.construction.build_plan import GUIDELINE, PLAN, BuildPlan
from r2med.construction.cited_links import write_links
from r2med.construction.diagnosis_groups import GROUPS_FACT, write_groups
from r2med.construction.items import ITEMS, NOT_READ, Rejected, Stream, StreamItem
from r2med.construction.repeated_items import REPEATED_ID, KnownItems
from r2med.construction.step import Step, StepWork, Streams, read_items
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime, running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import digest
from r2med.foundation.store.dataset_labels import dataset_label
from r2med.foundation.store.files import sha256, write_atomically
from r2med.foundation.store.sharing import exclusive, private_folder
from r2med.foundation.text.terminal_text import quoted
from r2med.models.llm.chat import FROM_THE_MODEL

log = logging.getLogger("r2med")

ITEMS_FILE, REJECTED_FILE = "items.jsonl", "rejected.jsonl"
"""Files that a step writes: the items that go on, and the items that it left out."""

MAX_LOGGED_PARTS = 3
"""Number of unreadable parts of a source that get a line in the log. The others are only counted."""

Shown = tuple[str, dict[str, Any]]
"""Title and fields of an item, to show to a person."""
AnyLine = TypeVar("AnyLine")

LASTING_FAILURES = FROM_THE_MODEL | {"unreadable", "context_length", "bad_request"}
"""Kinds of failures that the model or the prompt causes, so that asking again would not help."""


@dataclass(frozen=True)
class Done:
    """A finished step: its key and files, how many items went on, how many were left out, and why."""

    number: int
    step: str
    stream: Stream
    key: str
    kept: int
    rejected: Mapping[str, int]
    failures: Mapping[str, int]
    cost: Cost
    facts: Mapping[str, Any]
    described: Mapping[str, Any]
    """Settings of the step, with the LLM and prompt that it used."""
    files: Mapping[str, str]
    """Name of each written file -> SHA-256 of its bytes."""
    reused: bool = False

    @property
    def is_final(self) -> bool:
        """True if running again would change nothing. Failures of the network or the budget are tried again."""
        return self.failures.keys() <= LASTING_FAILURES

    @classmethod
    def read(cls, folder: Path) -> Done | None:
        """Read the result of a step from its folder; None if the step was never finished."""
        try:
            body = json.loads((folder / "step.json").read_bytes())
            return cls(**{**body, "cost": Cost.from_dict(body["cost"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def changed_file(self, folder: Path) -> Path | None:
        """Return a file that is missing or was changed since the step wrote it; None if there is no such file."""
        for name, expected in self.files.items():
            path = folder / name
            if not path.is_file() or sha256(path) != expected:
                return path
        return None

    def write(self, folder: Path) -> None:
        """Write the result of a step. This comes last, so that all files it names already exist."""
        body = {**asdict(self), "cost": self.cost.as_dict()}
        write_atomically(folder / "step.json", (json.dumps(body, indent=1) + "\n").encode())


@dataclass(frozen=True)
class BuildFolder:
    """A plan and the folder in which it is built."""

    plan: BuildPlan
    out: Path

    @classmethod
    def open(cls, out: Path | str) -> BuildFolder:
        """Open the build in a folder. Raises UserError if there is no build in it."""
        copy = Path(out) / PLAN
        if not copy.is_file():
            raise UserError(f"{out} does not contain a build: r2med build run PLAN.toml -o {quoted(out)} makes one")
        return cls(BuildPlan.read(copy), Path(out))

    def folder(self, number: int) -> Path:
        """Return the folder of a step's items. The first step has number 1."""
        return self.out / "steps" / f"{number:02d}-{self.plan.steps[number - 1].name}"

    @property
    def dataset(self) -> Path:
        """Folder of the dataset. It has the plan's name, since other libraries name a dataset after its folder."""
        return self.out / self.plan.facts.name

    @property
    def label(self) -> str:
        """The name of the dataset in the store."""
        return dataset_label(self.plan.facts.name, self.dataset)

    def status(self) -> list[Done | None]:
        """Return the last result of each step; None for a step that was not finished."""
        return [Done.read(self.folder(number)) for number in range(1, len(self.plan.steps) + 1)]

    def streams(self, upto: int | None = None) -> Streams:
        """Return the streams after the first `upto` steps, or after all steps."""
        files: dict[Stream, tuple[Path, ...]] = {}
        for number, step in enumerate(self.plan.steps[:upto], 1):
            _extend(files, step, self.folder(number))
        return Streams(files, self.plan.file.parent, self.plan.facts.labels)

    def items(self, number: int) -> Iterator[StreamItem]:
        """Yield the items that a step wrote."""
        step = self.plan.steps[number - 1]
        return Streams({step.writes: (self.folder(number) / ITEMS_FILE,)}, self.out).read(
            step.writes, ITEMS[step.writes]
        )

    def rejected(self, number: int) -> Iterator[Rejected]:
        """Yield the items that a step left out."""
        return read_items(self.folder(number) / REJECTED_FILE, Rejected)

    def sample(self, number: int, count: int, seed: int = 0, rejected: bool = False) -> list[Shown]:
        """Return random items of a step, or items that it left out. Number 0 is the last step."""
        if not 0 <= number <= len(self.plan.steps):
            raise UserError(f"no step {number}: {self.out} has {len(self.plan.steps)} steps (r2med build show)")
        number = number or len(self.plan.steps)
        if Done.read(self.folder(number)) is None:
            raise UserError(f"step {number} is not done yet: r2med build run PLAN.toml -o {quoted(self.out)}")
        lines: Iterator[StreamItem | Rejected] = self.rejected(number) if rejected else self.items(number)
        return [_shown(line) for line in drawn(lines, count, seed)]

    def trace(self, key: str) -> list[tuple[int, str, Shown]]:
        """Return the history of an item: number and name of each step that wrote it or left it out, with its fields."""
        traced = []
        for number, done in enumerate(self.status(), 1):
            if done is not None:
                lines: Iterator[StreamItem | Rejected] = itertools.chain(self.items(number), self.rejected(number))
                traced += [(number, done.step, _shown(line)) for line in lines if line.key == key]
        return traced

    def run(self, setup: Setup | Runtime, announce: Callable[[str], None] = lambda step: None) -> list[Done]:
        """Run every step whose output is missing, or depends on something that changed.

        Raises UserError if the budget is used up; answers received so far are kept. Raises UserError if the copy of the
        plan would overwrite a plan written by hand.
        """
        self._spare_other_plan()
        private_folder(self.out)
        with exclusive(self.out / ".lock"):
            write_atomically(self.out / PLAN, self.plan.file.read_bytes())
            if (guideline := self.plan.file.with_name(GUIDELINE)).is_file():
                write_atomically(self.out / GUIDELINE, guideline.read_bytes())
            with running(setup) as runtime:
                return self._run(runtime.with_store(runtime.store.about(self.label)), announce)

    def _spare_other_plan(self) -> None:
        copy, own = self.out / PLAN, self.plan.file.read_bytes()
        if copy.is_file() and not (self.out / "steps").exists() and copy.read_bytes() != own:
            raise UserError(
                f"{copy} is a different plan that was not built here: move it away, or choose another folder with -o"
            )

    def _run(self, runtime: Runtime, announce: Callable[[str], None]) -> list[Done]:
        done: list[Done] = []
        for turn in self._turns(runtime):
            announce(str(turn.step))
            placed = {self.folder(number) for number in range(1, turn.number)}
            if (last := self._kept(turn.key, turn.folder, placed)) is not None:
                done.append(replace(last, number=turn.number, reused=True))
            else:
                done.append(_run(turn, StepWork(runtime)))
            if turn.step.adds and turn.step.writes == "questions":
                write_links(self.out, self.streams(turn.number))  # a later step may need the pages
            if GROUPS_FACT in done[-1].facts:
                write_groups(self.out, done[-1].facts[GROUPS_FACT])
            if "budget" in done[-1].failures:
                raise runtime.budget.exceeded(done[-1].failures["budget"])
        named = {self.folder(number) for number in range(1, len(done) + 1)}
        for outdated in set((self.out / "steps").iterdir()) - named:
            shutil.rmtree(outdated)
        return done

    def _turns(self, runtime: Runtime) -> Iterator[_PlannedStep]:
        """Yield the steps in order, each with a key of everything that its output depends on.

        The caller may change the folder or the key of a step before it takes the next one.
        """
        files: dict[Stream, tuple[Path, ...]] = {}
        keys: dict[Stream, str] = {}
        for number, step in enumerate(self.plan.steps, 1):
            streams = Streams(dict(files), self.plan.file.parent, self.plan.facts.labels)
            inputs = dict.fromkeys((*step.reads, *([step.writes] if step.adds else [])))
            step_key = step.key(streams, runtime)
            key = digest([step_key, [keys.get(stream, "") for stream in inputs]])
            turn = _PlannedStep(number, step, key, step_key, streams, self.folder(number))
            yield turn
            keys[step.writes] = turn.key
            if turn.is_run:
                _extend(files, step, turn.folder)

    def _kept(self, key: str, folder: Path, placed: Collection[Path]) -> Done | None:
        """Return the result of the step with this key. If the step has moved in the plan, its folder moves too.

        `placed` are the folders of the steps before. They stay, even if one of these is the same step.
        """
        others = (other for other in sorted((self.out / "steps").glob("[0-9]*")) if other not in placed)
        for other in dict.fromkeys((folder, *others)):
            done = Done.read(other)
            if done is None or done.key != key or not done.is_final:
                continue
            if changed := done.changed_file(other):
                log.warning(
                    "%s was changed after its step wrote it: step %d, %s, is run again", changed, done.number, done.step
                )
                continue
            if other != folder:
                aside = folder.with_name("aside")
                if folder.exists():
                    folder.rename(aside)
                other.rename(folder)
                if aside.exists():
                    aside.rename(other)
            return done
        return None

    def calls(self, setup: Setup | Runtime) -> Iterator[tuple[Step, Needs | None]]:
        """Yield what each step would still ask at most; None if that is not known yet.

        Nothing is asked and only sources are read, so every item of a source goes on to all later steps.
        """
        with TemporaryDirectory() as scratch, running(setup) as runtime:
            for turn in self._turns(runtime):
                last = Done.read(turn.folder)
                if last is not None and last.key == turn.key and last.is_final and not last.changed_file(turn.folder):
                    yield turn.step, Needs(note="built")
                    continue
                turn.key = f"planned {turn.number}"  # later steps depend on output that does not exist yet
                turn.is_run = not turn.step.reads
                if turn.is_run:
                    turn.folder = Path(scratch) / str(turn.number)
                    _run(turn, StepWork(runtime))
                yield turn.step, turn.step.calls(turn.streams, runtime)


@dataclass
class _PlannedStep:
    """A step that is about to run, with its number, key, input and folder."""

    number: int
    step: Step
    key: str
    """Digest of the step's own key and of the keys of the streams that it reads."""
    step_key: Mapping[str, Any]
    streams: Streams
    folder: Path
    is_run: bool = True
    """False if the step is only planned, so that it wrote no items."""


def _shown(line: StreamItem | Rejected) -> Shown:
    if isinstance(line, Rejected):
        return f"{line.key}: left out, {line.reason}{f' ({line.note})' if line.note else ''}", line.item
    return line.key, line.model_dump(mode="json", exclude_defaults=True)


def drawn(items: Iterable[AnyLine], count: int, seed: int) -> list[AnyLine]:
    """Return a uniform random sample in the order of the items, in one pass and little memory (reservoir sampling)."""
    chance = random.Random(seed)
    kept: list[tuple[int, AnyLine]] = []
    for number, item in enumerate(items):
        if number < count:
            kept.append((number, item))
        elif (slot := chance.randrange(number + 1)) < count:
            kept[slot] = (number, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]


def _extend(files: dict[Stream, tuple[Path, ...]], step: Step, folder: Path) -> None:
    before = files.get(step.writes, ()) if step.adds else ()
    files[step.writes] = (*before, folder / ITEMS_FILE)


def _nothing_read(step: Step, reasons: Mapping[str, int]) -> str:
    """Return what is wrong with a source without a single usable item."""
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in sorted(reasons.items()))
    found = f"all parts were left out ({left_out})" if left_out else "the source has nothing that it reads"
    return f"{step}: no {step.writes} were read: {found}; it reads {step.expects}"


def _run(turn: _PlannedStep, work: StepWork) -> Done:
    """Run a step. Items are written as they come, and are valid only once `step.json` exists."""
    step, folder = turn.step, turn.folder
    made_items = iter(step.run(turn.streams, work))
    # An LLM without a key fails here, before the output of an earlier run is removed.
    first = list(itertools.islice(made_items, 1))
    private_folder(folder)
    (folder / "step.json").unlink(missing_ok=True)
    kept, reasons, known = 0, Counter[str](), KnownItems(step, turn.streams)
    with (
        (folder / ITEMS_FILE).open("w", encoding="utf-8") as items,
        (folder / REJECTED_FILE).open("w", encoding="utf-8") as left_out,
    ):
        for made in itertools.chain(first, made_items):
            if not isinstance(made, Rejected | ITEMS[step.writes]):
                raise TypeError(f"{step.name} wrote {type(made).__name__} into {step.writes}")
            item = made if isinstance(made, Rejected) else known.checked(made)
            if isinstance(item, Rejected):
                reasons[item.reason] += 1
                if item.reason == NOT_READ and reasons[item.reason] <= MAX_LOGGED_PARTS:
                    log.warning("%s: %s", step.name, item.note)
            else:
                kept += 1
            (left_out if isinstance(item, Rejected) else items).write(
                item.model_dump_json(exclude_defaults=True) + "\n"
            )
    if step.expects and not kept and not reasons[REPEATED_ID]:
        raise UserError(_nothing_read(step, reasons))
    if reasons[REPEATED_ID]:
        log.warning("%s: items left out because of a repeated id: %d", step, reasons[REPEATED_ID])
    took = (work.failures, work.cost, work.facts)
    for name, content in work.reports.items():
        (folder / name).write_text(content, "utf-8")
    files = {name: sha256(folder / name) for name in (ITEMS_FILE, REJECTED_FILE, *work.reports)}
    result = Done(turn.number, str(step), step.writes, turn.key, kept, dict(reasons), *took, turn.step_key, files)
    result.write(folder)
    return result
