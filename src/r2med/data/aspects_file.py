"""Read the aspects of answers: `aspects.jsonl` beside a dataset, or the table of a dataset of the hub."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import field_validator

from r2med.data.dataset import QueryAspect
from r2med.data.layouts import Layout
from r2med.data.layouts.hub_tables import HubTables
from r2med.data.problems import Problems
from r2med.data.source_rows import AspectRow, SourceRow, read_rows
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.unicode import is_unicode

ASPECTS_NAME = "aspects.jsonl"


class AspectLine(SourceRow):
    """One line of an aspects file."""

    query: str
    aspect: str
    documents: list[Any]
    weight: float | int | None = None

    @field_validator("query", "aspect")
    @classmethod
    def _not_empty(cls, identifier: str) -> str:
        if not identifier:
            raise ValueError("empty id: every aspect needs the id of its query and one of its own")
        return identifier

    @field_validator("documents")
    @classmethod
    def _ids(cls, documents: list[Any]) -> list[Any]:
        if not documents or not all(isinstance(document, str) and is_unicode(document) for document in documents):
            raise ValueError("field 'documents' must be a list of at least one document id")
        return documents

    @field_validator("weight")
    @classmethod
    def _above_0(cls, weight: float | None) -> float | None:
        if weight is not None and not (math.isfinite(weight) and weight > 0):
            raise ValueError(f"field 'weight' must be a number above 0, found {weight}")
        return weight


def aspect_rows(layout: Layout, problems: Problems) -> Iterator[AspectRow]:
    """Yield the aspects of a dataset, if there are any."""
    path = layout.root / ASPECTS_NAME
    if isinstance(layout, HubTables) and layout.has_aspects:
        yield from layout.aspects(problems)
    elif path.is_file():
        yield from read_aspects(path, problems)


def read_aspects(path: Path, problems: Problems) -> Iterator[AspectRow]:
    """Yield the rows of an aspects file. An aspect without a weight has the weight 1."""
    for line, row in read_rows(path, AspectLine, problems):
        weight = 1.0 if row.weight is None else float(row.weight)
        yield AspectRow(row.query, row.aspect, weight, tuple(row.documents), path, line)


def aspects_of_file(path: Path) -> dict[str, dict[str, QueryAspect]]:
    """Return the aspects of a file. Raises UserError for its first fault, or if it has no aspects."""
    if not path.is_file():
        raise UserError(f"{path}: there is no such file of aspects")
    problems = Problems()
    aspects = gather_aspects(read_aspects(path, problems), problems)
    if problems.problems:
        raise UserError(str(problems.problems[0]))
    if not aspects:
        raise UserError(f"{path} has no aspects")
    return aspects


def gather_aspects(rows: Iterator[AspectRow], problems: Problems) -> dict[str, dict[str, QueryAspect]]:
    """Return query id -> id of an aspect -> the aspect. An aspect that is repeated is a problem."""
    aspects: dict[str, dict[str, QueryAspect]] = {}
    for row in rows:
        of_query = aspects.setdefault(row.query, {})
        if row.id in of_query:
            message = f"aspect {row.id!r} of query {row.query!r} is repeated: name all its documents in one line"
            problems.add(row.path, row.line, message, "repeated aspect")
        of_query[row.id] = QueryAspect(row.weight, tuple(dict.fromkeys(row.documents)))
    return aspects
