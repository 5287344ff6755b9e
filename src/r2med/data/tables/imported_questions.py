"""Read the questions of an import: one for each id, or one for each text if there are no ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from r2med.data.tables.columns import Part
from r2med.data.tables.imported_documents import cell_text, rows_named
from r2med.data.tables.table import flat
from r2med.foundation.core.errors import UserError

RowKey = tuple[str, str, int]
"""File, sheet and line of a row."""


def row_key(part: Part, line: int) -> RowKey:
    """Return the key that identifies a row."""
    return str(part.table.path), part.table.sheet, line


@dataclass(frozen=True)
class ImportedQuestions:
    """The questions by id, and the id of the question in each row."""

    questions: Mapping[str, dict[str, str]]
    rows: Mapping[RowKey, str]
    notices: tuple[str, ...] = ()


def read_questions(parts: Sequence[Part]) -> ImportedQuestions:
    """Return the questions of all tables. Raises UserError if two texts have one id.

    If a question has a row for each relevant document, the rows may repeat it or leave its cell empty. Spreadsheets
    export merged cells as empty ones.
    """
    questions: dict[str, dict[str, str]] = {}
    rows: dict[RowKey, str] = {}
    first: dict[str, str] = {}
    numbered: dict[str, str] = {}
    merged: list[str] = []
    left_out: list[str] = []
    for part in parts:
        above = ""
        for line, row in part.rows():
            text, own, where = cell_text(row["query"]), flat(row.get("query_id", "")), part.table.at(line)
            if not text:
                known = own if own in questions else "" if own else above
                if known and flat(row.get("relevant", "")):
                    merged.append(where)
                    rows[row_key(part, line)] = known
                elif said := flat(row.get("relevant", "")):
                    raise UserError(f"{where}: no question beside {said[:40]!r}: write it, or remove the row")
                else:
                    left_out.append(f"{where} ({own[:40]!r})")
                continue
            above = own or numbered.setdefault(text, f"q{len(numbered) + 1}")
            rows[row_key(part, line)] = above
            if questions.setdefault(above, {"id": above, "text": text})["text"] != text:
                raise UserError(f"{where}: id {above!r} is already used for another question in {first[above]}")
            first.setdefault(above, where)
            if answer := cell_text(row.get("answer", "")):
                questions[above].setdefault("answer", answer)
    notices = [f"rows without a question are read with the one above: {rows_named(merged)}"] if merged else []
    notices += [f"rows without a question are left out: {rows_named(left_out)}"] if left_out else []
    return ImportedQuestions(questions, rows, tuple(notices))
