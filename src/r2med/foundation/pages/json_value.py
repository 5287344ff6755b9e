"""Pages as values for JSON: tables with their kinds of columns and exact numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from r2med.foundation.pages.cells import Marked, Value, value_of
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Bullets, Page, Paragraph, Part, Section, Table, Verbatim


def page_value(page: Page) -> dict[str, Any]:
    """Return a page as a value of dictionaries, lists, texts and numbers."""
    top = {"title": page.title, "about": page.about, "summary": page.summary}
    facts = [{"label": label, "fact": fact, "note": note} for label, fact, note in page.facts]
    return {**_known(top), **_known({"facts": facts}), "sections": list(map(_section, page.sections))}


def page_json(page: Page) -> str:
    """Return a page as JSON."""
    return json.dumps(page_value(page), indent=1, ensure_ascii=False) + "\n"


def table_value(table: Table) -> dict[str, Any]:
    """Return the columns of a table, each with its kind, and its rows; an estimate is a value with its bounds."""
    columns = [{"head": column.head, "kind": column.kind} for column in table.columns]
    about = {"name": table.name, "title": table.title, "note": table.note}
    return {**_known(about), "columns": columns, "rows": [[_cell(cell) for cell in row] for row in table.rows]}


def _section(section: Section) -> dict[str, Any]:
    head = {"name": section.name, "title": section.title, "aside": section.aside, "lead": section.lead}
    texts = [text for part in section.body for text in _texts(part)]
    rest = {"texts": texts, "tables": list(map(table_value, section.tables)), "notes": list(section.notes)}
    return _known({**head, **rest})


def _texts(part: Part) -> Sequence[str]:
    match part:
        case Paragraph():
            return [f"{part.label} {part.text}" if part.label else part.text]
        case Bullets():
            return part.texts
        case Verbatim():
            return [part.text]
        case Table():
            return []


def _known(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _cell(cell: Value | Marked) -> Any:
    value = value_of(cell)
    if isinstance(value, Estimate):
        return {"value": value.value, "low": value.low, "high": value.high}
    return value
