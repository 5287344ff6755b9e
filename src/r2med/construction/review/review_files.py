"""Export and import reviews: CSV for spreadsheets and JSON for Label Studio."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r2med.construction.review.review_items import ReviewItem
from r2med.construction.review.review_kinds import KINDS, PASSAGE
from r2med.construction.review.reviews import VERDICTS, Review, by_candidate
from r2med.data.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.csv_text import FORMULA_STARTS, csv_rows
from r2med.foundation.store.files import write_atomically

COLUMNS = ("question", "chunk", "annotator", "verdict", "comment", "adjudicated", "at")
"""Columns of reviews of passages. With reviews of other kinds there are also `kind` and a column for each point."""
POINTS = tuple(dict.fromkeys(point.name for kind in KINDS.values() for point in kind.points if kind.has_several_points))
_ALL_COLUMNS = (*COLUMNS, "kind", *POINTS)

_QUOTED_STARTS = (*FORMULA_STARTS, "'")
"""First characters of a cell that is exported with a quotation mark in front. The import removes this mark again."""


def export_reviews(path: Path, reviews: Sequence[Review], items: Sequence[ReviewItem]) -> None:
    """Write reviews as .csv, or as .json for Label Studio with one task per candidate."""
    if path.suffix.lower() == ".csv":
        content = _as_csv(reviews)
    elif path.suffix.lower() == ".json":
        content = json.dumps(list(_tasks(items, reviews)), indent=1, ensure_ascii=False) + "\n"
    else:
        raise UserError(f"{path}: reviews can be written as .csv, or as .json for Label Studio")
    write_atomically(path, content.encode("utf-8", "backslashreplace"))


def import_reviews(path: Path) -> list[Review]:
    """Read reviews from .csv or from Label Studio's .json. Raises UserError with the first wrong review."""
    read = _from_tasks(path) if path.suffix.lower() == ".json" else _from_csv(path)
    reviews = []
    for where, fields in read:
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


# Label Studio has a task for each candidate and an annotation for each review. Its accounts are unknown here, so the
# annotator is a field of the form, as docs/review.md shows.


def _tasks(items: Sequence[ReviewItem], reviews: Sequence[Review]) -> Iterator[dict[str, Any]]:
    reviewed = {kind: by_candidate(reviews, kind) for kind in KINDS}
    for item in items:
        annotations = [_annotation(review) for review in reviewed[item.kind].get(item.pair, [])]
        yield {"data": _data(item), "annotations": annotations}


def _data(item: ReviewItem) -> dict[str, str]:
    """Return the texts of a task. Texts of questions have the names of their fields."""
    question, chunk = item.question, item.chunk
    data = {"question_id": question.id, "question": question.text, "answer": question.answer}
    if chunk:
        data |= {"chunk_id": chunk.id, "reasoning": question.reasoning, "passage": chunk.text}
        return data | {"source": chunk.url or chunk.source or chunk.title}
    kind = KINDS[item.kind]
    shown = {text.field.removeprefix("question."): item.text(text) for text in (*kind.beside, *kind.main)}
    return data | {"kind": item.kind, **{name: text for name, text in shown.items() if name != "text"}}


def _annotation(review: Review) -> dict[str, Any]:
    texts = {"annotator": review.annotator, "comment": review.comment}
    choices = review.written
    if review.adjudicated:
        choices["adjudicated"] = "yes"
    about = "passage" if review.kind == PASSAGE else "question"
    result = [_result(name, about, "choices", {"choices": [choice]}) for name, choice in choices.items()]
    result += [_result(name, about, "textarea", {"text": [text]}) for name, text in texts.items() if text]
    return {"result": result, "created_at": review.at, "was_cancelled": False}


def _result(name: str, about: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": about, "type": kind, "value": value}


def _from_tasks(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        tasks = json.loads(path.read_text("utf-8-sig"))
        for number, task in enumerate(tasks, 1):
            data = task["data"]
            for annotation in task.get("annotations") or []:
                if not annotation.get("was_cancelled"):
                    kind = str(data.get("kind") or PASSAGE)
                    chunk = str(data["chunk_id"]) if kind == PASSAGE else ""
                    item = {"question": str(data["question_id"]), "chunk": chunk, "kind": kind}
                    yield f"task {number}", {**item, **_said(annotation), "at": str(annotation.get("created_at") or "")}
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UserError(
            f"{path} is not an export of Label Studio, which is a list of tasks with data.question_id, data.chunk_id "
            f"and annotations ({type(error).__name__}: {str(error)[:80]})"
        ) from None


def _said(annotation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a review from an annotation's form."""
    said: dict[str, str] = {}
    for result in annotation.get("result") or []:
        value = result["value"]
        [text] = (value.get("choices") or value.get("text") or [""])[:1]
        said[result["from_name"]] = str(text)
    by = annotation.get("completed_by")
    account = str(by.get("email") or by.get("id") or "") if isinstance(by, dict) else str(by or "")
    answers = {name: said[name].lower() for name in POINTS if name in said}
    return {
        "annotator": said.get("annotator") or account,
        "verdict": said.get("verdict", "").lower(),
        "comment": said.get("comment", ""),
        "adjudicated": said.get("adjudicated") == "yes",
        **({"answers": answers} if answers else {}),
    }
