"""Tables of questions and passages without ids: the passages become documents, and equal passages become one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from r2med.data.tables.column_contents import mean_words
from r2med.data.tables.column_names import (
    NAMES,
    OTHER_NAMES,
    may_say_relevant,
    names_documents,
    plain_name,
    says_not_relevant,
)
from r2med.data.tables.table import Cell, Row, SourceTable
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting

MIN_WORDS = 3
"""Mean number of words from which the cells of a column are passages."""


@dataclass(frozen=True)
class PassageTable:
    """A table of questions, and its columns of passages. The first column holds the relevant ones."""

    table: SourceTable
    passages: tuple[str, ...]

    @property
    def documents(self) -> SourceTable:
        """The passages as a table of documents, numbered in their order."""

        def read() -> Iterator[Row]:
            for text, (number, line) in self._numbers.items():
                yield line, {"id": str(number), "text": text}

        return replace(self.table, columns=("id", "text"), read=read)

    @property
    def questions(self) -> SourceTable:
        """The table with ids in the place of passages."""

        def read() -> Iterator[Row]:
            for line, row in self.table:
                ids = {column: self._ids(row.get(column, "")) for column in self.passages}
                yield line, {**row, **ids}

        return replace(self.table, read=read, notices=())

    @cached_property
    def _numbers(self) -> dict[str, tuple[int, int]]:
        """Passage -> its number and the first line that holds it."""
        numbers: dict[str, tuple[int, int]] = {}
        for line, row in self.table:
            for text in (text for column in self.passages for text in _texts(row.get(column, ""))):
                numbers.setdefault(text, (len(numbers) + 1, line))
        return numbers

    def _ids(self, cell: Cell) -> Cell:
        return [str(self._numbers[text][0]) for text in _texts(cell)]


def _texts(cell: Cell) -> list[str]:
    cells = [cell] if isinstance(cell, str) else cell
    return [text for each in cells if (text := each.strip())]


def passage_table(table: SourceTable, query: str, named: Sequence[str]) -> PassageTable | None:
    """Return a table of questions whose passages are documents; None if it has no column of passages.

    `query` is the column of questions, `named` are the text columns that the user named. Raises UserError if two
    columns could hold the relevant passages.
    """
    free = [column for column in table.columns if column != query]
    texts = [column for column in free if _holds_passages(table, column)]
    positive = [column for column in named if column in free] or [
        column for column in texts if not says_not_relevant(column)
    ]
    called = [column for column in positive if may_say_relevant(column)]
    if len(called) == 1:
        positive = called
    if len(positive) > 1:
        readings = " or ".join(map(repr, positive[:3]))
        raise UserError(
            f"{table}: the passages can be those of {readings}: choose with ",
            Setting("import_data", text=positive[0], query=query),
        )
    if not positive:
        return None
    return PassageTable(table, (positive[0], *(column for column in texts if says_not_relevant(column))))


def _holds_passages(table: SourceTable, column: str) -> bool:
    name = plain_name(column)
    if name in OTHER_NAMES or name in NAMES["answer"] or name in NAMES["title"] or name in NAMES["links"]:
        return False
    called = name in NAMES["text"] or may_say_relevant(column) or says_not_relevant(column) or names_documents(column)
    return called and mean_words(table, column, only_filled=True) >= MIN_WORDS
