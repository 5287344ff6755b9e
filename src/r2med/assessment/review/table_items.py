"""The rows of a table as items of a rubric. The columns of the table are the texts of the rubric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import Rubric
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest

QUESTION, PASSAGE_TEXT = "question", "passage"
"""Texts that have ids of their own, in the columns question_id and id."""
ORIGIN = ("title", "url", "source")
"""Columns that say where people can read more."""


def table_items(path: Path, rubric: Rubric) -> Iterator[Item]:
    """Yield the rows of a table as items. An id that is there before, or a row without a needed text, is left out.

    Raises UserError if the table has no column for a text that the rubric needs.
    """
    known = set()
    for table in open_tables(path):
        if missing := [each for each in needed_columns(rubric) if each not in table.columns]:
            columns = ", ".join(each.field for each in rubric.texts)
            raise UserError(f"{table}: no column {missing[0]!r}: the rubric {rubric.name} needs the columns {columns}")
        for _, row in table:
            cells = {name: cell if isinstance(cell, str) else " ".join(cell) for name, cell in row.items()}
            item = rubric.item(_id(cells, rubric), cells, origin=_origin(cells, rubric))
            if item and item.id not in known:
                known.add(item.id)
                yield item


def needed_columns(rubric: Rubric) -> list[str]:
    """Return the columns without which a table has no item of a rubric."""
    return [each.field for each in rubric.texts if each.required or each.rated]


def has_columns(path: Path, rubric: Rubric) -> bool:
    """Return True if every part of a table has the columns that a rubric needs."""
    return all(each in table.columns for table in open_tables(path) for each in needed_columns(rubric))


def _id(cells: Mapping[str, str], rubric: Rubric) -> tuple[str, str]:
    """Return the ids of the question and the passage, or that of the row if the rubric has neither."""
    fields = [each.field for each in rubric.texts]
    own = cells.get("id", "")
    if QUESTION not in fields:
        return own or digest([cells.get(field, "") for field in fields])[:12], ""
    question = cells.get("question_id", "") or digest(cells.get(QUESTION, ""))[:12]
    return question, (own or digest(cells.get(PASSAGE_TEXT, ""))[:12]) if PASSAGE_TEXT in fields else ""


def _origin(cells: Mapping[str, str], rubric: Rubric) -> Mapping[str, str]:
    origin = {name: cells.get(name, "") for name in ORIGIN}
    is_passage = PASSAGE_TEXT in (each.field for each in rubric.texts)
    return origin if is_passage or origin["title"] or origin["url"] else {}
