"""Run the steps of a plan, each once: what a step wrote is used again as long as nothing it depends on has changed."""

from __future__ import annotations

import itertools
import json
import logging
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from r2med.construction.items import ITEMS, NOT_READ, Item, Question, Rejected, Stream
from r2med.construction.repeated_items import content_mark, earlier_items, id_clash, key_mark, question_mark
from r2med.construction.review.labels import Labelling
from r2med.construction.step import Step, Streams, Work, beside, damaged
from r2med.core.cards import read_toml, validated
from r2med.core.cost import Cost
from r2med.core.errors import UserError, nearest
from r2med.core.spec import parse_stage
from r2med.core.stages import stage
from r2med.data.dataset_cards import cards
from r2med.llm.chat import FROM_THE_MODEL
from r2med.runtime.runtime import Runtime, running
from r2med.runtime.setup import Setup
from r2med.store import about, digest
from r2med.store.files import exclusive, sha256, write_atomically

log = logging.getLogger("r2med")

PLAN = "plan.toml"
"""The copy of the plan in the folder that it was built in."""
RESERVED_NAMES = (PLAN, "steps", "reviews.sqlite")
"""What else lies in that folder."""
ITEMS_FILE, REJECTED_FILE = "items.jsonl", "rejected.jsonl"
"""What a step writes: the items that go on, and those that it left out."""


class PlanFile(BaseModel):
    """A plan as it is written: a TOML file with the steps, and what the dataset's card and datasheet will say."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    steps: tuple[str, ...] = Field(min_length=1)
    """Steps as they are typed: NAME(ARGUMENT, SETTING=VALUE)."""
    title: str = ""
    description: str = ""
    task: str = ""
    scenario: str = ""
    kind: str = ""
    """How its queries are asked: post, exam, case or similar case."""
    licence: str = ""
    creators: tuple[str, ...] = ()
    url: str = ""
    llm: str = ""
    """The LLM of steps that name none."""
    answers: str = ""
    """A file of scripted answers (see `llm.scripted`) that stands in for that LLM, so that the plan runs offline."""
    labels: Labelling = Labelling()
    """When judges' scores make a positive, and when a candidate is discarded."""
    version: str = "1.0.0"
    """Of the dataset: counted up when it is published anew."""
    biases: tuple[str, ...] = ()
    """Whom or what it represents too much or too little."""
    limits: tuple[str, ...] = ()
    """What is known to be wrong with it, for the datasheet."""
    sensitive: str = ""
    """What personal or sensitive information it holds, and what was done about it."""
    uses: str = ""
    """What it is meant for, and what not."""
    impact: str = ""
    """What good and harm it may do."""


@dataclass(frozen=True)
class Plan:
    """A plan, read: its steps are declared values."""

    file: Path
    facts: PlanFile
    steps: tuple[Step, ...]

    @classmethod
    def read(cls, path: Path | str) -> Plan:
        """Read a plan. Raises UserError that names the step or the field that is wrong."""
        file = Path(path)
        if not file.is_file():
            raise UserError(f"no plan {file}: it is a TOML file, such as r2med build example -o DIR writes")
        facts = validated(PlanFile, read_toml(file), file)
        if facts.name in RESERVED_NAMES:
            raise UserError(f"{file}: name: {facts.name!r} is a file or folder of every build; choose another name")
        kinds = {"post", "exam", "case", *(card.kind for card in cards().values() if card.kind)}
        if facts.kind and facts.kind.replace("-", " ") not in kinds:
            raise UserError(f"{file}: no kind {facts.kind!r}{nearest(facts.kind, kinds)}: {', '.join(sorted(kinds))}")
        return cls(file, facts, tuple(_step(text, file) for text in facts.steps))

    def setup(self, llm: str = "", **settings: Any) -> Setup:
        """Return the setup that the plan asks for; `settings` are fields of `Setup`, and go first."""
        if self.facts.answers and llm in ("", self.facts.llm):
            given = settings.get("model_paths", ())
            settings["model_paths"] = (*given, (self.facts.llm, beside(self.file.parent, self.facts.answers)))
        return Setup(llm=llm or self.facts.llm, **settings)


def _step(text: str, file: Path) -> Step:
    try:
        calls = parse_stage(text)
        if len(calls) != 1:
            raise UserError(f"{text!r} is more than one step: write each in quotes of its own")
        made = stage(calls[0], "build")
    except UserError as error:
        raise UserError(f"{file}: {error}") from None
    assert isinstance(made, Step)
    return made


TOLD = 3
"""Parts of a source that cannot be read of which each has a line in the log; the others are counted."""

Shown = tuple[str, dict[str, Any]]
"""The title of an item and its fields, for a person."""
AnyLine = TypeVar("AnyLine")

LASTING = FROM_THE_MODEL | {"unreadable", "context_length", "bad_request"}
"""Kinds of failures that are the model's or the prompt's own."""


@dataclass(frozen=True)
class Done:
    """A step that was run: where its items lie, how many went on and how many were left out, and why."""

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
    """Its settings, and the LLM and prompt it asked with, by which it is known again."""
    files: Mapping[str, str]
    """The name of each file that it wrote -> the SHA-256 of its bytes."""
    reused: bool = False

    @property
    def is_final(self) -> bool:
        """Whether asking again would change nothing: what the network or the budget refused is asked the next time."""
        return self.failures.keys() <= LASTING

    @classmethod
    def read(cls, folder: Path) -> Done | None:
        """Read what a step left; None if it was never finished."""
        try:
            body = json.loads((folder / "step.json").read_bytes())
            return cls(**{**body, "cost": Cost.from_dict(body["cost"])})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def changed_file(self, folder: Path) -> Path | None:
        """Return a file that is missing, or has other bytes than the step wrote; None if all are as they were."""
        for name, expected in self.files.items():
            path = folder / name
            if not path.is_file() or sha256(path) != expected:
                return path
        return None

    def write(self, folder: Path) -> None:
        """Write it last: what it says is then there."""
        body = {**asdict(self), "cost": replace(self.cost, latencies=()).as_dict()}
        write_atomically(folder / "step.json", (json.dumps(body, indent=1) + "\n").encode())


@dataclass(frozen=True)
class Build:
    """A plan, and the folder that it is built in."""

    plan: Plan
    out: Path

    @classmethod
    def open(cls, out: Path | str) -> Build:
        """Return what was built in a folder. Raises UserError if nothing was."""
        copy = Path(out) / PLAN
        if not copy.is_file():
            raise UserError(f"{out} is no folder of a build: r2med build run PLAN.toml -o {out} makes one")
        return cls(Plan.read(copy), Path(out))

    def folder(self, number: int) -> Path:
        """Return where a step's items lie; the first step is number 1."""
        return self.out / "steps" / f"{number:02d}-{self.plan.steps[number - 1].name}"

    @property
    def dataset(self) -> Path:
        """The folder of the dataset. It has the plan's name: other libraries know a dataset by that of its folder."""
        return self.out / self.plan.facts.name

    def status(self) -> list[Done | None]:
        """Return what each step left the last time; None for those that were not finished."""
        return [Done.read(self.folder(number)) for number in range(1, len(self.plan.steps) + 1)]

    def streams(self, upto: int | None = None) -> Streams:
        """Return the streams as the first steps left them, all of them without a number."""
        files: dict[Stream, tuple[Path, ...]] = {}
        for number, step in enumerate(self.plan.steps[:upto], 1):
            _extend(files, step, self.folder(number))
        return Streams(files, self.plan.file.parent)

    def items(self, number: int) -> Iterator[Item]:
        """Yield the items that a step wrote."""
        step = self.plan.steps[number - 1]
        return Streams({step.writes: (self.folder(number) / ITEMS_FILE,)}, self.out).read(
            step.writes, ITEMS[step.writes]
        )

    def rejected(self, number: int) -> Iterator[Rejected]:
        """Yield the items that a step left out."""
        path = self.folder(number) / REJECTED_FILE
        with path.open("rb") as lines:
            for place, line in enumerate(lines, 1):
                try:
                    yield Rejected.model_validate_json(line)
                except ValidationError:
                    raise damaged(path, place) from None

    def sample(self, number: int, count: int, seed: int = 0, rejected: bool = False) -> list[Shown]:
        """Return some items of a step, or of what it left out, drawn at random; number 0 is the last step."""
        if not 0 <= number <= len(self.plan.steps):
            raise UserError(f"no step {number}: {self.out} has {len(self.plan.steps)} (r2med build status)")
        number = number or len(self.plan.steps)
        if Done.read(self.folder(number)) is None:
            raise UserError(f"step {number} is not done yet: r2med build run PLAN.toml -o {self.out}")
        lines: Iterator[Item | Rejected] = self.rejected(number) if rejected else self.items(number)
        return [_shown(line) for line in drawn(lines, count, seed)]

    def trace(self, key: str) -> list[tuple[int, str, Shown]]:
        """Return what became of the item of a key: number and name of each step that wrote or left it out, and how."""
        traced = []
        for number, done in enumerate(self.status(), 1):
            if done is not None:
                lines: Iterator[Item | Rejected] = itertools.chain(self.items(number), self.rejected(number))
                traced += [(number, done.step, _shown(line)) for line in lines if line.key == key]
        return traced

    def run(self, setup: Setup | Runtime, announce: Callable[[str], None] = lambda step: None) -> list[Done]:
        """Run every step whose output is not there, or depends on something that changed.

        Raises UserError if the budget is used up; what was answered is kept. Raises UserError if the copy of the plan
        would replace a plan that somebody wrote.
        """
        self._spare_other_plan()
        self.out.mkdir(parents=True, exist_ok=True)
        with exclusive(self.out / ".lock"), about(dataset=self.plan.facts.name):
            write_atomically(self.out / PLAN, self.plan.file.read_bytes())
            with running(setup) as runtime:
                return self._run(runtime, announce)

    def _spare_other_plan(self) -> None:
        copy, own = self.out / PLAN, self.plan.file.read_bytes()
        if copy.is_file() and not (self.out / "steps").exists() and copy.read_bytes() != own:
            raise UserError(
                f"{copy} is another plan, and nothing was built from it here: move it away, or choose another folder "
                "with -o"
            )

    def _run(self, runtime: Runtime, announce: Callable[[str], None]) -> list[Done]:
        done: list[Done] = []
        for turn in self._turns(runtime):
            announce(str(turn.step))
            if (last := self._kept(turn.key, turn.folder)) is not None:
                done.append(replace(last, number=turn.number, reused=True))
            else:
                done.append(_run(turn, Work(runtime)))
            if "budget" in done[-1].failures:
                raise runtime.budget.exceeded(done[-1].failures["budget"])
        named = {self.folder(number) for number in range(1, len(done) + 1)}
        for outdated in set((self.out / "steps").iterdir()) - named:
            shutil.rmtree(outdated)
        return done

    def _turns(self, runtime: Runtime) -> Iterator[_Turn]:
        """Yield the steps in their order, each with the key of all that its output depends on.

        Whoever takes one may put another folder or key in its place before the next is asked for.
        """
        files: dict[Stream, tuple[Path, ...]] = {}
        keys: dict[Stream, str] = {}
        for number, step in enumerate(self.plan.steps, 1):
            streams = Streams(dict(files), self.plan.file.parent)
            inputs = dict.fromkeys((*step.reads, *([step.writes] if step.adds else [])))
            described = step.describe(streams, runtime)
            key = digest([described, [keys.get(stream, "") for stream in inputs]])
            turn = _Turn(number, step, key, described, streams, self.folder(number))
            yield turn
            keys[step.writes] = turn.key
            _extend(files, step, turn.folder)

    def _kept(self, key: str, folder: Path) -> Done | None:
        """Return what the step of a key left. If it stood elsewhere in the plan, it is moved to where it stands now."""
        for other in dict.fromkeys((folder, *sorted((self.out / "steps").glob("[0-9]*")))):
            done = Done.read(other)
            if done is None or done.key != key or not done.is_final:
                continue
            if changed := done.changed_file(other):
                log.warning(
                    "%s is not as its step wrote it: step %d, %s, is run again", changed, done.number, done.step
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

    def rehearse(self, setup: Setup | Runtime) -> Iterator[tuple[Step, Work]]:
        """Yield for each step what it would still ask, at most: filters by LLM pass everything on. Nothing is asked."""
        with TemporaryDirectory() as scratch, running(setup) as runtime:
            for turn in self._turns(runtime):
                work = Work(runtime, rehearsal=True)
                last = Done.read(turn.folder)
                if last is not None and last.key == turn.key and last.is_final and not last.changed_file(turn.folder):
                    work.answered = last.cost.calls
                else:
                    turn.key = f"rehearsed {turn.number}"  # what follows depends on something that is not there yet
                    turn.folder = Path(scratch) / str(turn.number)
                    _run(turn, work)
                yield turn.step, work


@dataclass
class _Turn:
    """A step whose turn it is."""

    number: int
    step: Step
    key: str
    described: Mapping[str, Any]
    streams: Streams
    folder: Path


def _shown(line: Item | Rejected) -> Shown:
    if isinstance(line, Rejected):
        return f"{line.key}: left out, {line.reason}{f' ({line.note})' if line.note else ''}", line.item
    return line.key, line.model_dump(mode="json", exclude_defaults=True)


def drawn(items: Iterable[AnyLine], count: int, seed: int) -> list[AnyLine]:
    """Return a uniform sample in its order, in one pass and in the memory of the sample (reservoir sampling)."""
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


def _run(turn: _Turn, work: Work) -> Done:
    """Run a step; its items are written as they come, and count only when `step.json` is there."""
    step, folder = turn.step, turn.folder
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "step.json").unlink(missing_ok=True)
    kept, reasons, seen = 0, Counter[str](), earlier_items(step, turn.streams)
    asked = {question_mark(each): each.id for each in turn.streams.questions()} if step.adds else {}
    with (
        (folder / ITEMS_FILE).open("w", encoding="utf-8") as items,
        (folder / REJECTED_FILE).open("w", encoding="utf-8") as left_out,
    ):
        for item in step.run(turn.streams, work):
            if isinstance(item, Rejected):
                left_out.write(item.model_dump_json(exclude_defaults=True) + "\n")
                reasons[item.reason] += 1
                if item.reason == NOT_READ and reasons[item.reason] <= TOLD:
                    log.warning("%s: %s", step.name, item.note)
                continue
            if not isinstance(item, ITEMS[step.writes]):
                raise TypeError(f"{step.name} wrote {type(item).__name__} into {step.writes}")
            mark, content = key_mark(item.key), content_mark(item)
            if mark in seen:
                if seen[mark] not in (b"", content):
                    raise id_clash(step, turn.streams, item)
                left_out.write(Rejected.of(item, "repeated id").model_dump_json(exclude_defaults=True) + "\n")
                reasons["repeated id"] += 1
                continue
            seen[mark] = b""  # what one source repeats is left out, whatever it says
            if isinstance(item, Question) and (first := asked.setdefault(question_mark(item), item.id)) != item.id:
                repeated = Rejected.of(item, "repeated question", f"of {first}")
                left_out.write(repeated.model_dump_json(exclude_defaults=True) + "\n")
                reasons[repeated.reason] += 1
                continue
            items.write(item.model_dump_json(exclude_defaults=True) + "\n")
            kept += 1
    if reasons["repeated id"]:
        log.warning("%s: %d left out, their ids came before (repeated id)", step, reasons["repeated id"])
    took = (work.failures, work.cost, work.facts)
    files = {name: sha256(folder / name) for name in (ITEMS_FILE, REJECTED_FILE)}
    result = Done(turn.number, str(step), step.writes, turn.key, kept, dict(reasons), *took, turn.described, files)
    result.write(folder)
    return result
