"""Recorded generations: METHOD/LLM/query_with_hydoc.jsonl beside a dataset, read again without an LLM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.jsonl import read_jsonl
from r2med.data.model import Dataset
from r2med.data.problems import Problems
from r2med.errors import UserError, checked_name, nearest
from r2med.retrieve.contracts import SearchQuery
from r2med.store import digest

METHODS = ("hyde", "query2doc", "lamer")
FILE = "query_with_hydoc.jsonl"


@dataclass(frozen=True)
class Expansion:
    """Every query of a dataset, with what was generated for it; one without counts as a failure and stays itself."""

    queries: tuple[SearchQuery, ...]
    failures: int
    fingerprint: str


@dataclass(frozen=True)
class Recorded:
    """Generations of one LLM by one method, from files."""

    method: str
    llm: str

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UserError(f"no expansion {self.method!r}{nearest(self.method, METHODS)}: {', '.join(METHODS)}")
        checked_name(self.llm, "model")

    def describe(self) -> dict[str, Any]:
        """Return what a score depends on; the texts themselves go in by their fingerprint."""
        return {"expansion": self.method, "llm": self.llm, "source": "recorded"}

    def expand(self, dataset: Dataset) -> Expansion:
        """Return the dataset's queries with their recorded texts."""
        texts = self._read(dataset)
        queries = tuple(
            SearchQuery(query, texts[query.id], self.method) if texts.get(query.id) else SearchQuery(query)
            for query in dataset.queries
        )
        failures = sum(not query.generated for query in queries)
        return Expansion(queries, failures, digest([[q.query.id, q.generated] for q in queries]))

    def _read(self, dataset: Dataset) -> dict[str, tuple[str, ...]]:
        path = self._file(dataset)
        problems = Problems()
        texts: dict[str, tuple[str, ...]] = {}
        for line, row in read_jsonl(path, {"id": str, "hy_doc": (str, list)}, problems):
            parts = [row["hy_doc"]] if isinstance(row["hy_doc"], str) else row["hy_doc"]
            if not all(isinstance(part, str) for part in parts):
                problems.add(path, line, "field 'hy_doc' must be a string or a list of strings")
            texts[row["id"]] = tuple(part for part in parts if isinstance(part, str) and part.strip())
        problems.raise_first(str(path))
        return texts

    def _file(self, dataset: Dataset) -> Path:
        folder = (dataset.folder or Path()) / self.method
        path = folder / self.llm / FILE
        if dataset.folder is None or not path.is_file():
            there = sorted(p.parent.name for p in folder.glob(f"*/{FILE}")) if dataset.folder else []
            hint = f"{nearest(self.llm, there)}: it has {', '.join(there) or 'none of this method'}"
            raise UserError(f"{dataset.name} has no recorded {self.method} texts of {self.llm!r}{hint}")
        return path
