"""One table of a user: its column names, its rows with line numbers, and its cells as text."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.unicode import is_unicode

SAMPLE_ROWS = 500
"""Number of rows from which the roles of columns are guessed."""

MAX_COLUMNS = 2_000
"""Maximum number of columns of a table. The cells of each column are examined, so a wider table could take hours."""

Kind = Literal["documents", "questions", "judgements"]
"""What a table holds."""

Cell = str | list[str]
Row = tuple[int, Mapping[str, Cell]]
"""The line or row number, for messages, and the cells by column."""


@dataclass(frozen=True)
class TableOptions:
    """What the user said about the layout of a file. The rest is guessed."""

    header: bool | None = None
    skip_rows: int | None = None
    sheets: tuple[str, ...] = ()
    encoding: str = ""


@dataclass(frozen=True)
class SourceTable:
    """One table of a file, or of a sheet of a workbook. Each iteration reads the file again."""

    path: Path
    columns: tuple[str, ...]
    read: Callable[[], Iterator[Row]]
    sheet: str = ""
    notices: tuple[str, ...] = ()
    left_out: dict[int, str] = field(default_factory=dict, compare=False)
    """Line -> what it holds, for lines that are not data. They are found while the table is read."""

    def __str__(self) -> str:
        return f"{self.path.name}, sheet {self.sheet}" if self.sheet else self.path.name

    def at(self, line: int) -> str:
        """Return the file and line of a row for messages."""
        return f"{self.path.name}, sheet {self.sheet}, row {line}" if self.sheet else f"{self.path.name}:{line}"

    def __iter__(self) -> Iterator[Row]:
        line = 0
        try:
            for line, row in self.read():
                self._check(line, row)
                yield line, row
        except UserError:
            raise
        except (RecursionError, ValueError, OSError, LookupError, TypeError) as error:
            # A file can be damaged anywhere, and each reader raises its own exceptions.
            after = f" after {self.at(line)}" if line else ""
            why = str(error)[:200] or type(error).__name__
            raise UserError(f"{self}: cannot be read{after} ({why}): save the table again") from None

    def _check(self, line: int, row: Mapping[str, Cell]) -> None:
        for column, cell in row.items():
            text = cell if isinstance(cell, str) else "".join(cell)
            if not text.isascii() and not is_unicode(text):
                fault = "holds half of a character (a lone surrogate)"
                raise UserError(f"{self.at(line)}: column {column!r} {fault}: remove it, or save the file as UTF-8")

    @cached_property
    def sample(self) -> tuple[Mapping[str, Cell], ...]:
        """The first rows of the table."""
        return tuple(row for _, row in itertools.islice(self, SAMPLE_ROWS))

    def values(self, column: str) -> tuple[str, ...]:
        """Return the filled cells of a column in the sample. They are computed once."""
        if column not in self._values:
            self._values[column] = tuple(word for _, row in self if (word := flat(row.get(column, ""))))
        return self._values[column]

    @cached_property
    def _values(self) -> dict[str, tuple[str, ...]]:
        return {}


def flat(cell: Cell) -> str:
    """Return a cell as one string."""
    return (cell if isinstance(cell, str) else ";".join(cell)).strip()


def text_of(value: Any) -> Cell:
    """Return a value as text: numbers as one types them, lists of values as lists of strings."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list | tuple):
        return [cell if isinstance(cell, str) else " ".join(cell) for cell in map(text_of, value)]
    if isinstance(value, dict):
        if len(value) == 1 and next(iter(value)).startswith("$"):  # {"$oid": "65a1"}, as databases export a value
            return text_of(next(iter(value.values())))
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "isoformat"):  # a date
        return str(value.isoformat()).removesuffix("T00:00:00")
    return str(value)


def column_names(cells: Sequence[Any]) -> tuple[str, ...]:
    """Return distinct column names. Columns without a name are numbered."""
    names: dict[str, None] = {}
    for number, cell in enumerate(cells, 1):
        name = " ".join(str(text_of(cell)).split()) or f"column {number}"
        while name in names:
            name = f"{name} {number}"
        names[name] = None
    return tuple(names)


def check_width(path: Path, width: int) -> None:
    """Raise UserError if a table has more than `MAX_COLUMNS` columns."""
    if width > MAX_COLUMNS:
        raise UserError(f"{path}: more than {MAX_COLUMNS:,} columns: keep those that matter")
