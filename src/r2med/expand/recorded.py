"""Recorded generations: texts that an LLM wrote before, read again without one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r2med.data import Dataset, Query
from r2med.data.layouts.hub_clone import read_rows
from r2med.data.problems import Problems
from r2med.data.source_rows import Fields
from r2med.errors import UserError, nearest
from r2med.expand.cleaning import clean, is_cut_off, is_raw
from r2med.expand.contracts import Expansion, joined
from r2med.expand.llm_names import folder_name
from r2med.expand.recorded_files import find, others
from r2med.spec import Call
from r2med.store import Store

METHODS = ("hyde", "query2doc", "lamer", "search-r1", "search-o1")

Texts = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Recorded:
    """Generations of one LLM by one method, from files."""

    method: str
    llm: str
    query: str = ""
    """Keep or drop the original query in a search by words; empty: as the method has it."""
    folder: Path | None = None
    """Where the files are; None: beside the dataset. A folder of several datasets has one of their names in it."""
    otherwise: str = field(default="", compare=False)
    """What a user may do where there are no texts, if anything."""

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UserError(f"no expansion {self.method!r}{nearest(self.method, METHODS)}: {', '.join(METHODS)}")
        folder_name(self.llm)
        joined(Query("", ""), (), self.method, self.query)

    @property
    def name(self) -> str:
        """What one types to get it."""
        return str(Call(self.method, (self.llm,), (("query", self.query),) if self.query else ()))

    def describe(self, dataset: Dataset | None = None) -> dict[str, Any]:
        """Return what a score depends on; the texts themselves go in by their fingerprint."""
        chosen = {"query": self.query} if self.query else {}
        return {"expansion": self.method, "llm": self.llm, "source": "recorded", **chosen}

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for texts that are not there or are not these datasets'."""
        for dataset in datasets:
            self.expand(dataset)

    def expand(self, dataset: Dataset, store: Store | None = None) -> Expansion:
        """Return the dataset's queries with their recorded texts."""
        files = self._files(dataset)
        rows, notices = _read(files, dataset)
        texts, kinds = _cleaned(rows, [query.id for query in dataset.queries])
        queries = [joined(query, texts.get(query.id, ()), self.method, self.query) for query in dataset.queries]
        if bare := sum(not query.generated for query in queries):
            why = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            notices += [
                f"{files[0]}: {bare} of {len(queries)} queries have no text and are searched as they are ({why})"
            ]
        return Expansion.of(queries, failure_kinds=kinds, notices=notices)

    def _files(self, dataset: Dataset) -> list[Path]:
        roots = self._roots(dataset)
        if files := find(roots, self.method, self.llm):
            return files
        where = f" in {self.folder}" if self.folder else ""
        rest = f"{others(roots, self.method, self.llm)}{self.otherwise}"
        raise UserError(f"{dataset.name} has no recorded {self.method} texts of {self.llm!r}{where}{rest}")

    def _roots(self, dataset: Dataset) -> list[Path]:
        if self.folder is not None:
            return [self.folder / dataset.name, self.folder]
        return [dataset.folder] if dataset.folder is not None else []


def _read(files: list[Path], dataset: Dataset) -> tuple[Texts, list[str]]:
    """Return the texts by query id as they stand in the files; those of other queries than the dataset's are faults."""
    asked = {query.id: " ".join(query.text.split()) for query in dataset.queries}
    problems = Problems()
    texts: dict[str, tuple[str, ...]] = {}
    unknown: list[str] = []
    # A row without text is a query whose generation failed: no fault of the file's.
    required: Fields = {"id": str, "hy_doc": (str, list, type(None))}
    for path, line, row in read_rows(files, required, {"text": str}, problems):
        name, parts = row["id"], _parts(row["hy_doc"])
        if parts is None:
            problems.add(path, line, "field 'hy_doc' must be a string or a list of strings")
        elif name not in asked:
            unknown.append(name)
        elif (text := row.get("text")) and " ".join(text.split()) != asked[name]:
            why = "these texts were generated for other queries"
            problems.add(path, line, f"id {name!r} has another text than query {name!r} of {dataset.name}: {why}")
        elif texts.setdefault(name, parts) != parts:
            problems.add(path, line, f"id {name!r} was used before with another hy_doc: ids must be distinct")
    if problems.problems:
        more = len(problems.problems) - 1 + problems.dropped
        raise UserError(f"{problems.problems[0]}{f' (and {more} more lines)' if more else ''}")
    if not unknown and not texts and asked:
        raise UserError(f"{files[0]}: it is empty: copy or generate it again")
    if unknown and not texts:
        raise UserError(f"{files[0]}: none of its {len(unknown)} ids is a query of {dataset.name}")
    more_ids = f"{files[0]}: {len(unknown)} texts for ids that {dataset.name} does not have, such as {unknown[:1]}"
    return texts, [more_ids] if unknown else []


def _parts(value: Any) -> tuple[str, ...] | None:
    parts = [value or ""] if isinstance(value, str | None) else value
    return tuple(parts) if all(isinstance(part, str) for part in parts) else None


def _cleaned(rows: Texts, ids: list[str]) -> tuple[Texts, dict[str, int]]:
    """Return the answers, and how many queries have none and why, in the words of the chat layer's failures."""
    raw = is_raw(part for parts in rows.values() for part in parts)
    kinds: Counter[str] = Counter()
    texts = {}
    for name in ids:
        parts = [part for part in rows.get(name, ()) if part.strip()]
        texts[name] = tuple(filter(None, (clean(part) for part in parts if not is_cut_off(part, raw))))
        if not texts[name]:
            kinds["missing" if name not in rows else "no_marker" if parts else "empty"] += 1
    return texts, dict(sorted(kinds.items()))
