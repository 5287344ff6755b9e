"""Export and import reviews as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r2med.assessment.review.review_kinds import KINDS, PASSAGE
from r2med.assessment.review.reviews import VERDICTS, Review
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.csv_text import FORMULA_STARTS, csv_rows
from r2med.foundation.store.files import write_atomically

COLUMNS = ("question", "chunk", "annotator", "verdict", "comment", "adjudicated", "at")
"""Columns of reviews of passages. With reviews of other kinds there are also `kind` and a column for each point."""
POINTS = tuple(dict.fromkeys(point.name for kind in KINDS.values() for point in kind.points if kind.has_several_points))
_ALL_COLUMNS = (*COLUMNS, "kind", *POINTS)

_QUOTED_STARTS = (*FORMULA_STARTS, "'")
"""First characters of a cell that is exported with a quotation mark in front. The import removes this mark again."""


def export_reviews(path: Path, reviews: Sequence[Review]) -> None:
    """Write reviews as .csv."""
    if path.suffix.lower() != ".csv":
        raise UserError(f"{path} does not end in .csv: reviews are written as CSV, as {path.stem}.csv")
    write_atomically(path, _as_csv(reviews).encode("utf-8", "backslashreplace"))


def import_reviews(path: Path) -> list[Review]:
    """Read reviews from .csv. Raises UserError with the first wrong review."""
    reviews = []
    for where, fields in _from_csv(path):
        try:
            reviews.append(Review(**fields))
        except (ValidationError, TypeError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else None
            raise UserError(f"{path}, {where}: {_wrong(first, fields)}") from None
    return reviews


def _wrong(first: Any, fields: Mapping[str, Any]) -> str:
    """Return what is wrong in a row, from the first error of its validation."""
    if first and not first["loc"]:
        return str(first["msg"]).removeprefix("Value error, ")
    field = str(first["loc"][-1]) if first else "the row"
    given = {**fields, **fields.get("answers", {})}.get(field, "")
    right = f"a review has a verdict ({', '.join(VERDICTS)}) and an annotator"
    return f"{field}={str(given)[:60]!r} is wrong: {right}"


def _as_csv(reviews: Sequence[Review]) -> str:
    columns = COLUMNS if all(review.kind == PASSAGE for review in reviews) else _ALL_COLUMNS
    rows: list[Sequence[str]] = [columns]
    for review in reviews:
        cells = {**review.model_dump(), **review.answers, "adjudicated": "yes" if review.adjudicated else "no"}
        texts = [str(cells.get(name, "")) for name in columns]
        rows.append([f"'{text}" if text.startswith("'") else text for text in texts])
    return csv_rows(rows)


def _from_csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for table in open_tables(path):
        for line, row in table:
            cells = {name: str(cell) for name, cell in row.items() if name in _ALL_COLUMNS}
            plain = {
                name: cell[1:] if cell[:1] == "'" and cell[1:].startswith(_QUOTED_STARTS) else cell
                for name, cell in cells.items()
            }
            settled = plain.pop("adjudicated", "").strip().lower() in ("yes", "true", "1")
            yield f"line {line}", {**_answered(plain), "adjudicated": settled}


def _answered(cells: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a review, with the answers to points in a field of their own."""
    fields: dict[str, Any] = {name: cell for name, cell in cells.items() if name not in POINTS}
    fields |= {"verdict": fields.get("verdict", "").strip().lower(), "kind": fields.get("kind", "").strip() or PASSAGE}
    answers = {name: cell for name in POINTS if (cell := cells.get(name, "").strip().lower())}
    return fields | ({"answers": answers} if answers else {})
