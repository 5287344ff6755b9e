"""Generations as the benchmark lays them out: METHOD/LLM/query_with_hydoc.jsonl, read back by `Recorded`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from r2med.data.model import Dataset
from r2med.errors import checked_name
from r2med.expand.contracts import Expansion
from r2med.expand.recorded_files import FILE
from r2med.retrieve.contracts import SearchQuery
from r2med.store.files import write_atomically


def write_generations(expansion: Expansion, dataset: Dataset, folder: Path, method: str, llm: str) -> Path:
    """Write the texts of one dataset into its folder below `folder`; the file is whole or not there."""
    place = folder / dataset.name / checked_name(method, "method") / folder_name(llm) / FILE
    lines = [json.dumps(_row(search), ensure_ascii=False) for search in expansion.queries]
    write_atomically(place, "".join(f"{line}\n" for line in lines).encode())
    return place


def folder_name(llm: str) -> str:
    """Return an LLM's name as a folder can have it: endpoints name models with slashes and colons."""
    return checked_name(re.sub(r"[^A-Za-z0-9._+-]+", "-", llm).strip("-._+"), "model")


def _row(search: SearchQuery) -> dict[str, Any]:
    # One text is a string, as the original reads it; several are a list. A query without any has its line too:
    # whoever joins this file with the queries line by line would otherwise pair the wrong ones.
    written: str | list[str] = list(search.generated) if len(search.generated) > 1 else "".join(search.generated)
    row: dict[str, Any] = {"id": search.query.id, "text": search.query.text, "hy_doc": written}
    return {**row, "doc_id": list(search.query.excluded)} if search.query.excluded else row
