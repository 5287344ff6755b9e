"""The fields of a query file that are neither id nor text nor answer. No retriever of this package reads them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.layouts import detect
from r2med.data.problems import Problems
from r2med.data.source_rows import OpenRow, read_rows
from r2med.foundation.core.errors import UserError

KNOWN_FIELDS = ("id", "_id", "text", "answer", "excluded_ids")


def query_lines(dataset: Dataset) -> Path | None:
    """Return the query file of a dataset if it has JSON lines; None for tables and for values in memory."""
    try:
        file = detect(dataset.folder).query_file if dataset.folder else None
    except UserError:  # tables of the hub
        return None
    return file if file and file.suffix == ".jsonl" and file.is_file() else None


def query_metadata(dataset: Dataset) -> dict[str, dict[str, str]]:
    """Return query -> field -> text of the ids and of further fields; empty if the query file has no JSON lines."""
    file = query_lines(dataset)
    known = {query.id for query in dataset.queries}
    metadata: dict[str, dict[str, str]] = {}
    for _, row in read_rows(file, OpenRow, Problems()) if file else ():
        cells = row.model_extra or {}
        query = cells.get("id", cells.get("_id"))
        if isinstance(query, str) and query in known:
            further = {field: _flat(value) for field, value in cells.items() if field not in KNOWN_FIELDS}
            metadata[query] = {"id": query, **{field: text for field, text in further.items() if text}}
    return metadata


def _flat(value: Any) -> str:
    """Return all texts and numbers of a value on one line, with the names of inner fields."""
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_flat(each)}" for name, each in value.items())
    if isinstance(value, list):
        return " ".join(map(_flat, value))
    return "" if value is None else str(value)
