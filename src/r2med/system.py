"""System = expansion → retriever: a spec that prints as its own name, parses back, and runs.

bm25
bm25(scorer=lucene, k1=1.2)
bm25+bge
hyde(author) → fuse(bm25+minilm, method=minmax)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from r2med.data.cards import Instruction
from r2med.data.model import Dataset
from r2med.errors import UserError
from r2med.expand import METHODS, Expansion, Recorded
from r2med.models.options import Options
from r2med.retrieve.cached import cached_search
from r2med.retrieve.contracts import Retriever, SearchQuery
from r2med.retrieve.registry import build
from r2med.retrieve.run import Run
from r2med.spec import ARROW, Call, parse
from r2med.store import Store


@dataclass(frozen=True)
class Outcome:
    """What running a system on a dataset gave, with what a record wants to know of it."""

    run: Run
    settings: dict[str, Any]
    failures: int
    timings: dict[str, float]
    usage: dict[str, float]


@dataclass(frozen=True)
class System:
    """What is evaluated."""

    retriever: Retriever
    expander: Recorded | None = None

    @classmethod
    def parse(cls, spec: str, options: Options | None = None) -> System:
        """Return the system that a spec names."""
        *before, last = parse(spec)
        if len(before) > 1 or any(len(stage) > 1 for stage in before):
            raise UserError(f"{spec!r} has {len(before) + 1} stages: an expansion → a retriever is all there is")
        if not before and len(last) == 1 and last[0].name in METHODS:
            raise UserError(f"{spec!r} is an expansion: name what searches with it, as in {last[0]} → bm25")
        expander = _expander(before[0][0]) if before else None
        return cls(build(last, options or Options()), expander)

    @cached_property
    def name(self) -> str:
        """The spec in its canonical form; settings at their defaults are left out."""
        stages = [] if self.expander is None else [str(Call(self.expander.method, (self.expander.llm,)))]
        return ARROW.join([*stages, self.retriever.name])

    def __str__(self) -> str:
        return self.name

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on, the generated texts by their fingerprint."""
        expansion = self.expander.describe() if self.expander else None
        return {
            "retriever": self.retriever.describe(_instruction(dataset)),
            "expansion": expansion,
            "generations": self.expand(dataset).fingerprint,
        }

    def expand(self, dataset: Dataset) -> Expansion:
        """Return the queries as they will be searched."""
        if self.expander is not None:
            return self.expander.expand(dataset)
        return Expansion(tuple(SearchQuery(query) for query in dataset.queries), 0, "")

    def run(self, dataset: Dataset, store: Store, k: int) -> Outcome:
        """Search a dataset. The run is an artefact: asked again, it is read back."""
        expansion = self.expand(dataset)
        corpus, queries, instruction = dataset.corpus, expansion.queries, _instruction(dataset)
        searched = cached_search(self.retriever, corpus, queries, k, store, instruction)
        settings = {**self.describe(dataset), "k": k}
        return Outcome(searched.run, settings, expansion.failures, searched.timings, searched.usage)


def _instruction(dataset: Dataset) -> Instruction | None:
    return dataset.card.instruction if dataset.card else None


def _expander(call: Call) -> Recorded:
    if (len(call.arguments) != 1 or call.settings) and call.name in METHODS:
        raise UserError(f"{call.name} needs the name of a model, such as {call.name}(author)")
    return Recorded(call.name, call.arguments[0] if call.arguments else "")
