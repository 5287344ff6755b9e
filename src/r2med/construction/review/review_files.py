"""Export and import reviews: CSV for spreadsheets and JSON for Label Studio."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from r2med.construction.review.review_items import ReviewItem
from r2med.construction.review.reviews import VERDICTS, Review, by_candidate
from r2med.core.errors import UserError
from r2med.data.table_files import open_tables
from r2med.pages.csv_text import FORMULA_STARTS, csv_rows
from r2med.store.files import write_atomically

COLUMNS = ("question", "chunk", "annotator", "verdict", "comment", "adjudicated", "at")

_QUOTED_STARTS = (*FORMULA_STARTS, "'")
"""First characters of a cell that is exported with a quotation mark in front. The import removes this mark again."""


def export_reviews(path: Path, reviews: Iterable[Review], items: Sequence[ReviewItem]) -> None:
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
            field = str(first["loc"][0]) if first else "the row"
            given = f"{field}={str(fields.get(field, ''))[:60]!r}"
            raise UserError(
                f"{path}, {where}: {given} is wrong: a review has a verdict ({', '.join(VERDICTS)}) and an annotator"
            ) from None
    return reviews


def _as_csv(reviews: Iterable[Review]) -> str:
    rows: list[Sequence[str]] = [COLUMNS]
    for review in reviews:
        cells = {**review.model_dump(), "adjudicated": "yes" if review.adjudicated else "no"}
        rows.append([f"'{cells[name]}" if cells[name].startswith("'") else cells[name] for name in COLUMNS])
    return csv_rows(rows)


def _from_csv(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for table in open_tables(path):
        for line, row in table:
            cells = {name: str(cell) for name, cell in row.items() if name in COLUMNS}
            plain = {
                name: cell[1:] if cell[:1] == "'" and cell[1:].startswith(_QUOTED_STARTS) else cell
                for name, cell in cells.items()
            }
            settled = plain.pop("adjudicated", "").strip().lower() in ("yes", "true", "1")
            yield f"line {line}", {**plain, "verdict": plain.get("verdict", "").strip().lower(), "adjudicated": settled}


# Label Studio has a task for each candidate and an annotation for each review. Its accounts are unknown here, so the
# annotator is a field of the form, as docs/review.md shows.


def _tasks(items: Sequence[ReviewItem], reviews: Iterable[Review]) -> Iterator[dict[str, Any]]:
    reviewed = by_candidate(reviews)
    for item in items:
        question, chunk = item.question, item.chunk
        data = {"question_id": question.id, "chunk_id": chunk.id, "question": question.text, "answer": question.answer}
        data |= {"reasoning": question.reasoning, "passage": chunk.text}
        data |= {"source": chunk.url or chunk.source or chunk.title}
        yield {"data": data, "annotations": [_annotation(review) for review in reviewed.get(item.pair, [])]}


def _annotation(review: Review) -> dict[str, Any]:
    texts = {"annotator": review.annotator, "comment": review.comment}
    result = [_result("verdict", "choices", {"choices": [review.verdict]})]
    if review.adjudicated:
        result.append(_result("adjudicated", "choices", {"choices": ["yes"]}))
    result += [_result(name, "textarea", {"text": [text]}) for name, text in texts.items() if text]
    return {"result": result, "created_at": review.at, "was_cancelled": False}


def _result(name: str, kind: str, value: Mapping[str, Any]) -> dict[str, Any]:
    return {"from_name": name, "to_name": "passage", "type": kind, "value": value}


def _from_tasks(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    try:
        tasks = json.loads(path.read_text("utf-8-sig"))
        for number, task in enumerate(tasks, 1):
            data = task["data"]
            for annotation in task.get("annotations") or []:
                if not annotation.get("was_cancelled"):
                    pair = {"question": str(data["question_id"]), "chunk": str(data["chunk_id"])}
                    yield f"task {number}", {**pair, **_said(annotation), "at": str(annotation.get("created_at") or "")}
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
    return {
        "annotator": said.get("annotator") or account,
        "verdict": said.get("verdict", "").lower(),
        "comment": said.get("comment", ""),
        "adjudicated": said.get("adjudicated") == "yes",
    }
