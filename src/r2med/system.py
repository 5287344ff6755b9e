"""System = expansion → retriever: a spec that prints as its own name, parses back, and runs.

bm25
bm25(scorer=lucene, k1=1.2)
bm25+bge
rm3 → bm25
hyde(o3-mini, samples=3) → fuse(bm25+minilm, method=minmax)
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from r2med.data.cards import Instruction
from r2med.data.model import Dataset
from r2med.errors import UserError
from r2med.expand import Expander, Expansion
from r2med.expand.registry import KNOWN, ExpandOptions
from r2med.expand.registry import build as build_expander
from r2med.models.options import Options
from r2med.retrieve.cached import cached_search
from r2med.retrieve.contracts import Retriever, SearchQuery
from r2med.retrieve.registry import build as build_retriever
from r2med.retrieve.run import Run
from r2med.spec import ARROW, parse
from r2med.store import Store, default_store

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class Outcome:
    """What running a system on a dataset gave, with what a record wants to know of it."""

    run: Run
    settings: dict[str, Any]
    expansion: Expansion
    timings: dict[str, float]
    usage: dict[str, float]


@dataclass(frozen=True)
class System:
    """What is evaluated."""

    retriever: Retriever
    expander: Expander | None = None
    expansions: dict[str, Expansion] = field(default_factory=dict, compare=False, repr=False)
    """What was expanded in this run. Systems that share it ask once, however many retrievers search the texts."""

    @classmethod
    def parse(
        cls,
        spec: str,
        options: Options | None = None,
        expansion: ExpandOptions | None = None,
        store: Store | None = None,
        expansions: dict[str, Expansion] | None = None,
    ) -> System:
        """Return the system that a spec names; those given the same `expansions` share what they expand."""
        *before, last = parse(spec)
        if len(before) > 1 or any(len(stage) > 1 for stage in before):
            raise UserError(f"{spec!r} has {len(before) + 1} stages: an expansion → a retriever is all there is")
        if not before and len(last) == 1 and last[0].name in KNOWN:
            raise UserError(f"{spec!r} is an expansion: name what searches with it, as in {last[0]} → bm25")
        retriever = build_retriever(last, options or Options())
        if not before:
            return cls(retriever)
        expander = build_expander(before[0][0], expansion or ExpandOptions(), store or default_store())
        return cls(retriever, expander, {} if expansions is None else expansions)

    @cached_property
    def name(self) -> str:
        """The spec in its canonical form; settings at their defaults are left out."""
        stages = [] if self.expander is None else [self.expander.name]
        return ARROW.join([*stages, self.retriever.name])

    def __str__(self) -> str:
        return self.name

    def describe(self, dataset: Dataset, store: Store) -> dict[str, Any]:
        """Return every setting a score depends on, the generated texts by their fingerprint."""
        return {
            "retriever": self.retriever.describe(_instruction(dataset)),
            "expansion": self.expander.describe(dataset) if self.expander else None,
            "generations": self.expand(dataset, store).fingerprint,
        }

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Return the queries as they will be searched; asked once for a dataset, however often it is wanted."""
        if self.expander is None:
            return Expansion(tuple(SearchQuery(query) for query in dataset.queries), 0, "")
        key = f"{self.expander.name} {dataset.name} {dataset.fingerprint}"
        if key not in self.expansions:
            self.expansions[key] = self.expander.expand(dataset, store)
            for notice in self.expansions[key].notices:
                log.info("%s", notice)
        return self.expansions[key]

    def run(self, dataset: Dataset, store: Store, k: int) -> Outcome:
        """Search a dataset. The run is an artefact: asked again, it is read back."""
        expansion = self.expand(dataset, store)
        instruction = _instruction(dataset)
        searched = cached_search(self.retriever, dataset.corpus, expansion.queries, k, store, instruction)
        settings = {**self.describe(dataset, store), "k": k}
        return Outcome(searched.run, settings, expansion, searched.timings, searched.usage)


def _instruction(dataset: Dataset) -> Instruction | None:
    return dataset.card.instruction if dataset.card else None
