"""Pages as CSV. A text that a spreadsheet would read as a formula is guarded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from r2med.pages.cells import Marked, Value, value_of
from r2med.pages.estimate import Estimate
from r2med.pages.page import Page, Table

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_rows(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV. A text that starts like a formula gets an apostrophe in front; numbers are unchanged."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_guarded, row) for row in rows)
    return out.getvalue()


def table_csv(table: Table) -> str:
    """Return all values at full precision, without marks. A column of estimates becomes three columns."""
    wide = [
        any(isinstance(value_of(row[number]), Estimate) for row in table.rows) for number in range(len(table.columns))
    ]
    suffixes = {False: ("",), True: ("", " low", " high")}
    heads = [f"{head}{suffix}" for head, three in zip(table.heads, wide, strict=True) for suffix in suffixes[three]]
    rows = ([each for cell, three in zip(row, wide, strict=True) for each in _flat(cell, three)] for row in table.rows)
    return csv_rows([heads, *rows])


def page_csv(page: Page) -> str:
    """Return the tables of a page, separated by empty lines."""
    return "\n".join(map(table_csv, page.tables))


def _flat(cell: Value | Marked, three: bool) -> Iterator[object]:
    value = value_of(cell)
    if isinstance(value, Estimate):
        yield from ("" if each is None else each for each in (value.value, value.low, value.high))
    else:
        yield "" if value is None else value
        yield from ("", "") if three else ()


def _guarded(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
