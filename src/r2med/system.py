"""System = expansion → retriever: a spec that prints as its own name, parses back, and runs.

bm25
bm25(scorer=lucene, k1=1.2)
hyde(author) → bm25            (-> is read as →)
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from r2med.data.model import Dataset
from r2med.errors import UserError, nearest
from r2med.expand import METHODS, Expansion, Recorded
from r2med.retrieve.contracts import Retriever, SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store, digest
from r2med.store.files import write_array

# Name -> class, imported when it is used.
RETRIEVERS = {"bm25": "r2med.retrieve.bm25:BM25"}

RUN_VERSION = 1

_STAGE = re.compile(r"([A-Za-z0-9][\w.:+-]*)\s*(?:\(([^()]*)\))?")
_ARROW = re.compile(r"→|->")


@dataclass(frozen=True)
class Outcome:
    """What running a system on a dataset gave, with what a record wants to know of it."""

    run: Run
    settings: dict[str, Any]
    failures: int
    timings: dict[str, float]


@dataclass(frozen=True)
class System:
    """What is evaluated."""

    retriever: Retriever
    expander: Recorded | None = None

    @classmethod
    def parse(cls, spec: str) -> System:
        """Return the system that a spec names."""
        stages = [_parse_stage(part, spec) for part in _ARROW.split(spec)]
        if len(stages) > 2:
            raise UserError(f"{spec!r} has {len(stages)} stages: an expansion → a retriever is all there is")
        expander = _expander(*stages[0]) if len(stages) == 2 else None
        return cls(_retriever(*stages[-1]), expander)

    @cached_property
    def name(self) -> str:
        """The spec in its canonical form; settings at their defaults are left out."""
        stages = [] if self.expander is None else [f"{self.expander.method}({self.expander.llm})"]
        return " → ".join([*stages, _retriever_name(self.retriever)])

    def __str__(self) -> str:
        return self.name

    def describe(self) -> dict[str, Any]:
        """Return every setting a score depends on."""
        expansion = self.expander.describe() if self.expander else None
        return {"retriever": self.retriever.describe(), "expansion": expansion}

    def expand(self, dataset: Dataset) -> Expansion:
        """Return the queries as they will be searched."""
        if self.expander is not None:
            return self.expander.expand(dataset)
        return Expansion(tuple(SearchQuery(query) for query in dataset.queries), 0, "")

    def run(self, dataset: Dataset, store: Store, k: int) -> Outcome:
        """Search a dataset. The run is an artefact: asked again, it is read back."""
        expansion = self.expand(dataset)
        settings = {**self.describe(), "generations": expansion.fingerprint, "k": k}
        timings: dict[str, float] = {}

        def build(folder: Path) -> dict[str, Any]:
            searcher = self.retriever.index(dataset.corpus, store)
            run = _search(searcher, dataset, expansion.queries, k)
            write_array(folder / "rows.npy", run.rows)
            write_array(folder / "scores.npy", run.scores)
            return {"timings": dict(searcher.timings)}

        key = digest(["run", RUN_VERSION, dataset.fingerprint, settings])
        artefact = store.make("run", key, build)
        timings = {**artefact.meta["timings"], "run": artefact.meta["seconds"]}
        ids = tuple(query.id for query in dataset.queries)
        run = Run(ids, artefact.array("rows"), artefact.array("scores"), dataset.corpus)
        return Outcome(run, settings, expansion.failures, timings)


def _search(searcher: Any, dataset: Dataset, queries: tuple[SearchQuery, ...], k: int) -> Run:
    excluded = {q.id: dataset.corpus.rows(q.excluded) for q in dataset.queries if q.excluded}
    spare = max(map(len, excluded.values()), default=0)
    run = cast(Run, searcher.search(queries, k + spare))
    return run.without(excluded, k) if excluded else run


def _parse_stage(text: str, spec: str) -> tuple[str, list[str]]:
    match = _STAGE.fullmatch(text.strip())
    if match is None:
        raise UserError(f"cannot read {text.strip()!r} in the system {spec!r}: write it as NAME or NAME(SETTING, …)")
    arguments = [part.strip() for part in (match.group(2) or "").split(",")]
    return match.group(1), [part for part in arguments if part]


def _expander(name: str, arguments: list[str]) -> Recorded:
    if len(arguments) != 1 and name in METHODS:
        raise UserError(f"{name} needs the name of a model, such as {name}(author)")
    return Recorded(name, arguments[0] if arguments else "")


def _retriever(name: str, arguments: list[str]) -> Retriever:
    if name not in RETRIEVERS:
        hint = f"; {name}(…) → {next(iter(RETRIEVERS))} searches with it" if name in METHODS else ""
        known = ", ".join(RETRIEVERS)
        raise UserError(f"no retriever {name!r}{nearest(name, RETRIEVERS)}: there is {known}{hint}")
    cls = _resolve(RETRIEVERS[name])
    defaults: dict[str, Any] = {field.name: field.default for field in dataclasses.fields(cls)}
    settings: dict[str, Any] = {}
    for argument in arguments:
        setting, _, value = (part.strip() for part in argument.partition("="))
        if setting not in defaults:
            raise UserError(f"{name} has no setting {setting!r}{nearest(setting, defaults)}: {', '.join(defaults)}")
        try:
            settings[setting] = type(defaults[setting])(value)
        except ValueError:
            raise UserError(f"{name}: {setting}={value} is not a number") from None
    return cast(Retriever, cls(**settings))


def _retriever_name(retriever: Any) -> str:
    name = next((n for n, place in RETRIEVERS.items() if _resolve(place) is type(retriever)), None)
    if name is None:
        return type(retriever).__name__
    changed = [
        f"{field.name}={getattr(retriever, field.name)}"
        for field in dataclasses.fields(retriever)
        if getattr(retriever, field.name) != field.default
    ]
    return f"{name}({', '.join(changed)})" if changed else name


def _resolve(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
