"""CSV that a spreadsheet reads as data: a text that begins like a formula is guarded."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def csv_table(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV; a text that a spreadsheet would run gets an apostrophe before it, numbers stay the same."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(map(_guarded, row) for row in rows)
    return out.getvalue()


def _guarded(cell: object) -> object:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA_STARTS) else cell
