"""Read and write nuggets: the facts that an answer must contain, in `nuggets.jsonl` beside a dataset.

Retrieval scores do not depend on nuggets, so they are not part of the dataset's fingerprint. A record of answers has a
digest of those that were matched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.problems import Problems
from r2med.data.source_rows import SourceRow, read_rows
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest
from r2med.foundation.store.files import json_line, write_atomically

NUGGETS_NAME = "nuggets.jsonl"


class NuggetLine(SourceRow):
    """One line of a file of nuggets."""

    query: str
    nugget: str
    text: str
    vital: bool
    by: str | None = None
    reviewed: bool | None = None


@dataclass(frozen=True, slots=True)
class Nugget:
    """One fact that a good answer to a query contains."""

    query: str
    """The id of the query."""
    id: str
    """The id of the nugget, unique for its query."""
    text: str
    """The fact, in one sentence."""
    vital: bool = True
    """True if an answer without it is not good; False if it is only useful ("okay")."""
    by: str = ""
    """The LLM or the person that wrote it."""
    reviewed: bool = False
    """True if people checked it."""


@dataclass(frozen=True)
class Nuggets:
    """The nuggets of a dataset."""

    by_query: Mapping[str, tuple[Nugget, ...]]
    """Query id -> its nuggets in the order of the file."""

    @classmethod
    def of(cls, nuggets: Iterable[Nugget]) -> Nuggets:
        """Return the nuggets, grouped by query."""
        groups: dict[str, list[Nugget]] = {}
        for nugget in nuggets:
            groups.setdefault(nugget.query, []).append(nugget)
        return cls({query: tuple(each) for query, each in groups.items()})

    def __iter__(self) -> Iterator[Nugget]:
        return (nugget for each in self.by_query.values() for nugget in each)

    def __len__(self) -> int:
        return sum(map(len, self.by_query.values()))

    @cached_property
    def digest(self) -> str:
        """A digest of what scores depend on: queries, ids, texts and which nuggets are vital."""
        return digest(sorted((each.query, each.id, each.text, each.vital) for each in self))

    def write(self, path: Path) -> None:
        """Write the nuggets as JSON lines, completely or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, map(json_line, map(_row, self)))


def _row(nugget: Nugget) -> dict[str, Any]:
    return {
        "query": nugget.query,
        "nugget": nugget.id,
        "text": nugget.text,
        "vital": nugget.vital,
        "by": nugget.by,
        "reviewed": nugget.reviewed,
    }


def nuggets_of(dataset: Dataset) -> Nuggets | None:
    """Return the nuggets beside a dataset; None if it has none. Raises UserError for the first fault of the file."""
    path = dataset.folder / NUGGETS_NAME if dataset.folder else None
    return read_nuggets(path, dataset) if path and path.is_file() else None


def read_nuggets(path: Path, dataset: Dataset | None = None) -> Nuggets:
    """Return the nuggets of a file. Raises UserError for its first fault, or if no nugget is for the dataset."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file of nuggets: r2med nuggets makes one")
    problems = Problems()
    nuggets = Nuggets.of(nugget for _, nugget in nugget_rows(path, problems))
    if problems.problems:
        raise UserError(str(problems.problems[0]))
    known = {query.id for query in dataset.queries} if dataset else set(nuggets.by_query)
    if not known & set(nuggets.by_query):
        raise UserError(f"{path} has no nuggets{f' for queries of {dataset.name}' if dataset else ''}")
    return nuggets


def nugget_rows(path: Path, problems: Problems) -> Iterator[tuple[int, Nugget]]:
    """Yield the line number and the nugget of each line. Faults are reported."""
    names = set()
    for line, row in read_rows(path, NuggetLine, problems):
        name = row.query, row.nugget
        if not all(name) or not row.text.strip():
            problems.add(path, line, "a nugget needs the id of its query, an id of its own and a text")
        elif name in names:
            message = f"nugget {name[1]!r} of query {name[0]!r} is repeated: give each nugget an id of its own"
            problems.add(path, line, message, "repeated nugget")
        else:
            names.add(name)
            yield line, Nugget(*name, row.text, row.vital, row.by or "", bool(row.reviewed))
