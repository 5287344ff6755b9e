"""Pages as CSV. A text that a spreadsheet would read as a formula is guarded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from r2med.foundation.pages.cells import Marked, Value, value_of
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Page, Table

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_rows(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV. A text that starts like a formula gets an apostrophe in front; numbers are unchanged."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_guarded, row) for row in rows)
    return out.getvalue()


def table_csv(table: Table) -> str:
    """Return all values at full precision, without marks. A column of estimates becomes three columns."""
    widths = [max([1, *(_width(row[number]) for row in table.rows)]) for number in range(len(table.columns))]
    suffixes = ("", " low", " high")
    heads = [f"{head}{each}" for head, width in zip(table.heads, widths, strict=True) for each in suffixes[:width]]
    rows = (
        [each for cell, width in zip(row, widths, strict=True) for each in _flat(cell, width)] for row in table.rows
    )
    return csv_rows([heads, *rows])


def _width(cell: Value | Marked) -> int:
    """Return the number of columns that a cell needs: an estimate has an interval."""
    return 3 if isinstance(value_of(cell), Estimate) else 1


def page_csv(page: Page) -> str:
    """Return the tables of a page, separated by empty lines."""
    return "\n".join(map(table_csv, page.tables))


def _flat(cell: Value | Marked, width: int) -> Iterator[object]:
    value = value_of(cell)
    parts = (value.value, value.low, value.high) if isinstance(value, Estimate) else (value, None, None)
    yield from ("" if each is None else each for each in parts[:width])


def _guarded(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
