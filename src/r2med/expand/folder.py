"""Generations as the benchmark lays them out: METHOD/LLM/query_with_hydoc.jsonl, read back by `Recorded`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.problems import Problems
from r2med.data.source_rows import read_jsonl
from r2med.errors import UserError, checked_name
from r2med.expand.contracts import Expansion
from r2med.expand.llm_names import folder_name
from r2med.expand.recorded_files import FILE
from r2med.retrieve.retriever import SearchQuery
from r2med.store.files import write_atomically


class NotWrittenError(UserError):
    """A file was left as it was, because what there was to write is less."""


def write_generations(
    expansion: Expansion, dataset: Dataset, folder: Path, method: str, llm: str, *, overwrite: bool = False
) -> Path:
    """Write the texts of one dataset into its folder below `folder`; the file is whole or not there.

    Texts are dear. A file that has more of them, or those of other queries, is replaced only if told to, and by
    nothing but texts.
    """
    place = folder / dataset.name / checked_name(method, "method") / folder_name(llm) / FILE
    made = sum(len(search.generated) for search in expansion.queries)
    if not made and dataset.queries:
        raise NotWrittenError(f"{place} was not written: none of {len(expansion.queries)} queries got a text")
    same, others = _texts_in(place, dataset)
    if (same > made or others) and not overwrite:
        has = f"has {same} texts and there are {made} now" if same > made else f"has {others} texts of other queries"
        raise NotWrittenError(f"{place} {has}: it is left as it is, unless you say --overwrite")
    lines = [json.dumps(_row(search), ensure_ascii=False) for search in expansion.queries]
    write_atomically(place, "".join(f"{line}\n" for line in lines).encode())
    return place


def _texts_in(file: Path, dataset: Dataset) -> tuple[int, int]:
    """Return how many texts a file has for the queries of a dataset, and for others; what cannot be read is none."""
    asked = {query.id: query.text for query in dataset.queries}
    count = {True: 0, False: 0}
    for _, row in read_jsonl(file, {"id": str}, Problems()) if file.is_file() else ():
        texts, name = row.get("hy_doc"), row["id"]
        same = name in asked and row.get("text", asked[name]) == asked[name]
        count[same] += sum(bool(text) for text in (texts if isinstance(texts, list) else [texts]))
    return count[True], count[False]


def _row(search: SearchQuery) -> dict[str, Any]:
    # One text is a string, as the original reads it; several are a list. A query without any has its line too:
    # whoever joins this file with the queries line by line would otherwise pair the wrong ones.
    written: str | list[str] = list(search.generated) if len(search.generated) > 1 else "".join(search.generated)
    row: dict[str, Any] = {"id": search.query.id, "text": search.query.text, "hy_doc": written}
    return {**row, "doc_id": list(search.query.excluded)} if search.query.excluded else row
