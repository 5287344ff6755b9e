"""What a step of a build is: a declared value that reads streams of items and writes one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import ValidationError

from r2med.construction.items import Candidate, Chunk, Item, Judgement, Question, Rejected, SourcePage, Stream
from r2med.core.cost import NOTHING, Cost
from r2med.core.errors import UserError
from r2med.core.stages import Stage
from r2med.llm.costs import NO_CALLS, CallEstimate
from r2med.runtime.runtime import Runtime

AnyItem = TypeVar("AnyItem", bound=Item)


@dataclass(frozen=True)
class Streams:
    """The streams as they are before a step: files of JSON lines, read as often as one likes."""

    files: Mapping[Stream, tuple[Path, ...]]
    folder: Path
    """Where the plan lies: files that steps name are looked for here."""

    def read(self, stream: Stream, kind: type[AnyItem]) -> Iterator[AnyItem]:
        """Yield the items of a stream; none if no step before wrote any."""
        for path in self.files.get(stream, ()):
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    try:
                        yield kind.model_validate_json(line)
                    except ValidationError:
                        raise damaged(path, number) from None

    def questions(self) -> Iterator[Question]:
        """Yield the questions."""
        return self.read("questions", Question)

    def pages(self) -> Iterator[SourcePage]:
        """Yield the pages."""
        return self.read("pages", SourcePage)

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks."""
        return self.read("chunks", Chunk)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the candidates."""
        return self.read("candidates", Candidate)

    def judgements(self) -> Iterator[Judgement]:
        """Yield the judgements."""
        return self.read("judgements", Judgement)

    def path(self, name: str) -> Path:
        """Return a file that a step names. Raises UserError if it is not there."""
        path = beside(self.folder, name)
        if not path.exists():
            raise UserError(f"{path} is not there: the plan names it as {name!r}")
        return path


def damaged(path: Path, line: int = 0) -> UserError:
    """Return the error for a file of a step that is not as the step wrote it."""
    where = f"{path}, line {line}," if line else path
    return UserError(
        f"{where} is not as its step wrote it: r2med build run PLAN.toml -o {path.parents[2]} makes it again"
    )


def beside(folder: Path, name: str) -> Path:
    """Return a file that a plan in this folder names.

    Raises UserError if the name leads out of the folder: a plan from elsewhere must not publish files of this machine.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or name.startswith("~"):
        raise UserError(
            f"{name!r} is not beside the plan: put it, or a link to it, into {folder} and name it from there"
        )
    return folder / path


@dataclass
class Work:
    """What a step is given to work with, and where it leaves what it took and what else is worth knowing."""

    runtime: Runtime
    rehearsal: bool = False
    """Whether nothing may be asked: a step then passes its items on as they are, and leaves what it would ask."""
    cost: Cost = NOTHING
    estimate: CallEstimate = NO_CALLS
    """In a rehearsal: what would be asked that nobody has answered yet."""
    answered: int = 0
    """In a rehearsal: what would be asked and is answered already."""
    unpriced: bool = False
    """In a rehearsal: whether an LLM without a price would be asked."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Figures for status and datasheet, fit for JSON."""
    failures: dict[str, int] = field(default_factory=dict)
    """Items about which no call brought anything usable, by kind."""


class Step(Stage, kind="build"):
    """A step of a build."""

    reads: ClassVar[tuple[Stream, ...]] = ()
    """The streams that its output depends on."""
    writes: ClassVar[Stream]
    adds: ClassVar[bool] = False
    """Whether what it writes is added to the stream; otherwise it replaces it."""
    version: ClassVar[int] = 1
    """Counted up when its code gives other items for the same input."""

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Yield the items that go on and those that are left out, each as soon as it is known."""
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def describe(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return all its output depends on besides what it reads: settings, files and prompts by their hash."""
        return {**self.settings(), "version": self.version}
