"""Define the step of a build: a declared value that reads streams of items and writes one stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from r2med.construction.items import (
    Candidate,
    Judgement,
    PageChunk,
    Rejected,
    SourcePage,
    SourceQuestion,
    Stream,
    StreamItem,
)
from r2med.construction.labels import LABELLING, Labelling
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage
from r2med.foundation.text.terminal_text import quoted

AnyItem = TypeVar("AnyItem", bound=BaseModel)


def read_items(path: Path, kind: type[AnyItem]) -> Iterator[AnyItem]:
    """Yield the items of a file that a step wrote. Raises UserError if a line is damaged."""
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield kind.model_validate_json(line)
            except ValidationError:
                raise damaged(path, number) from None


@dataclass(frozen=True)
class Streams:
    """The streams before a step: files of JSON lines, which can be read any number of times."""

    files: Mapping[Stream, tuple[Path, ...]]
    folder: Path
    """Folder of the plan. Files that steps name are looked up here."""
    labelling: Labelling = LABELLING
    """The thresholds of the plan, which make labels from scores."""

    def read(self, stream: Stream, kind: type[AnyItem]) -> Iterator[AnyItem]:
        """Yield the items of a stream. Yields nothing if no earlier step wrote to it."""
        for path in self.files.get(stream, ()):
            yield from read_items(path, kind)

    def questions(self) -> Iterator[SourceQuestion]:
        """Yield the items of the stream of questions."""
        return self.read("questions", SourceQuestion)

    def pages(self) -> Iterator[SourcePage]:
        """Yield the items of the stream of pages."""
        return self.read("pages", SourcePage)

    def chunks(self) -> Iterator[PageChunk]:
        """Yield the items of the stream of chunks."""
        return self.read("chunks", PageChunk)

    def candidates(self) -> Iterator[Candidate]:
        """Yield the items of the stream of candidates."""
        return self.read("candidates", Candidate)

    def judgements(self) -> Iterator[Judgement]:
        """Yield the items of the stream of judgements."""
        return self.read("judgements", Judgement)

    def path(self, name: str) -> Path:
        """Return the path of a file that a step names. Raises UserError if it does not exist."""
        path = beside(self.folder, name)
        if not path.exists():
            raise UserError(f"{path} does not exist: the plan names it as {name!r}")
        return path


def damaged(path: Path, line: int = 0) -> UserError:
    """Return the error for a file that was changed after its step wrote it."""
    where = f"{path}, line {line}," if line else path
    out = path.parents[2]
    return UserError(
        f"{where} was changed after its step wrote it: r2med build run PLAN.toml -o {quoted(out)} makes it again"
    )


def beside(folder: Path, name: str) -> Path:
    """Return the path of a file that a plan in this folder names.

    Raises UserError if the path leads out of the folder, since a foreign plan must not publish files of this machine.
    """
    path = Path(name)
    if path.is_absolute() or ".." in path.parts or name.startswith("~"):
        raise UserError(
            f"{name!r} is not beside the plan: put it, or a link to it, into {folder} and use its path from there"
        )
    return folder / path


@dataclass
class StepWork:
    """The setup that a step works with, and the place where it records its cost and other facts."""

    runtime: Runtime
    cost: Cost = NOTHING
    facts: dict[str, Any] = field(default_factory=dict)
    """Facts for the status and the datasheet, as JSON values."""
    failures: dict[str, int] = field(default_factory=dict)
    """Kind of failure -> number of items without a usable answer."""
    reports: dict[str, str] = field(default_factory=dict)
    """Name -> content of files for people, in the folder of the step. They are never published."""


class Step(Stage, kind="build"):
    """A step of a build, which writes the items of one stream."""

    reads: ClassVar[tuple[Stream, ...]] = ()
    """Streams that the output depends on."""
    optional: ClassVar[tuple[Stream, ...]] = ()
    """Streams among them that no earlier step has to write."""
    writes: ClassVar[Stream]
    adds: ClassVar[bool] = False
    """True if the output is added to the stream. Otherwise it replaces the stream."""
    version: ClassVar[int] = 1
    """Increased when the code gives different items for the same input."""
    expects: ClassVar[str] = ""
    """For a step that reads a source: what it reads, for the error about a source without a single usable item."""
    deidentifies: ClassVar[bool] = False
    """True if the step replaces personal data. What earlier steps left out of its stream is then not published."""

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield the items that go on and the rejected items, each as soon as it is known."""
        raise NotImplementedError(f"{type(self).__name__} has no run()")

    def calls(self, streams: Streams, runtime: Runtime) -> Needs | None:
        """Return what the step would ask about these items at most; None if that is not known yet."""
        return Needs()

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return everything that the output depends on except its input: settings, and digests of files and prompts."""
        return {**self.settings(), "version": self.version}
