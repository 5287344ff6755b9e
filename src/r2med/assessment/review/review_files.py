"""Export and import reviews as tables."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r2med.assessment.review.kinds import PASSAGE
from r2med.assessment.review.reviews import VERDICTS, Review, Rubrics, rubrics_of
from r2med.assessment.rubrics.rubric import RUBRICS, Rubric
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.pages.text_formats import FORMULA_STARTS, csv_rows
from r2med.foundation.store.files import write_atomically

COLUMNS = ("question", "chunk", "annotator", "verdict", "comment", "adjudicated", "at")
"""Columns of reviews of passages. With reviews of other kinds there are also `kind` and a column for each point."""
CORRECTION = "correction"
"""Column of corrected texts, if somebody corrected one."""

_QUOTED_STARTS = (*FORMULA_STARTS, "'")
"""First characters of a cell that is exported with a quotation mark in front. The import removes this mark again."""


def export_reviews(path: Path, reviews: Sequence[Review]) -> None:
    """Write reviews as .csv."""
    if path.suffix.lower() != ".csv":
        raise UserError(f"{path} does not end in .csv: reviews are written as CSV, as {path.stem}.csv")
    write_atomically(path, _as_csv(reviews).encode("utf-8", "backslashreplace"))


def import_reviews(path: Path, rubrics: Rubrics = RUBRICS) -> list[Review]:
    """Read reviews from .csv. Raises UserError with the first wrong review."""
    reviews = []
    for where, fields in _from_csv(path, rubrics):
        try:
            reviews.append(Review.model_validate(fields, context=rubrics))
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
    columns = list(COLUMNS)
    if any(review.kind != PASSAGE for review in reviews):
        columns += ["kind", *_points(rubrics_of(reviews).values())]
    if any(review.correction for review in reviews):
        columns.append(CORRECTION)
    rows: list[Sequence[str]] = [columns]
    for review in reviews:
        cells = {**review.model_dump(), **review.written, "adjudicated": "yes" if review.adjudicated else "no"}
        texts = [str(cells.get(name, "")) for name in columns]
        rows.append([f"'{text}" if text.startswith("'") else text for text in texts])
    return csv_rows(rows)


def _points(rubrics: Iterable[Rubric]) -> list[str]:
    """Return the points that have a column of their own: all but the verdict."""
    return list(dict.fromkeys(point.name for rubric in rubrics for point in rubric.points if not rubric.has_verdict))


def _from_csv(path: Path, rubrics: Rubrics) -> Iterator[tuple[str, Mapping[str, Any]]]:
    points = _points(rubrics.values())
    for table in open_tables(path):
        needed = ("question", "annotator", *([] if "kind" in table.columns else ["chunk"]))
        if missing := [name for name in needed if name not in table.columns]:
            known = ", ".join(COLUMNS[:5])
            raise UserError(
                f"{path}: no column {missing[0]!r}{nearest(missing[0], table.columns)}: reviews have {known}"
            )
        for line, row in table:
            cells = {name: str(cell) for name, cell in row.items() if name in (*COLUMNS, "kind", CORRECTION, *points)}
            plain = {
                name: cell[1:] if cell[:1] == "'" and cell[1:].startswith(_QUOTED_STARTS) else cell
                for name, cell in cells.items()
            }
            settled = plain.pop("adjudicated", "").strip().lower() in ("yes", "true", "1")
            yield f"line {line}", {**_answered(plain, points, rubrics), "adjudicated": settled}


def _answered(cells: Mapping[str, str], points: Container[str], rubrics: Rubrics) -> dict[str, Any]:
    """Return the fields of a review, with the answers to points in a field of their own."""
    fields: dict[str, Any] = {name: cell for name, cell in cells.items() if name not in points}
    fields |= {"verdict": fields.get("verdict", "").strip().lower(), "kind": fields.get("kind", "").strip() or PASSAGE}
    words = rubrics[fields["kind"]].by_word if fields["kind"] in rubrics else ()
    given = {name: said for name, cell in cells.items() if name in points and (said := cell.strip())}
    answers = {name: said if said in words else said.lower() for name, said in given.items()}
    return fields | ({"answers": answers} if answers else {})
