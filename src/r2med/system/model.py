"""What is evaluated: queries are expanded, searched, and what was found is put into a better order."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from r2med.data.dataset import Dataset
from r2med.expand import Expander, Expansion
from r2med.expand.expansion import check
from r2med.rerank import Reranked, Reranker
from r2med.retrieve.cached import cached_search
from r2med.retrieve.retriever import Retriever, Searched, SearchQuery
from r2med.retrieve.run import Run
from r2med.setup import Setup
from r2med.spec import ARROW
from r2med.stages import Stage
from r2med.store import Store

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class Outcome:
    """What running a system on a dataset gave, stage by stage, with what a record wants to know of each."""

    run: Run
    settings: dict[str, Any]
    expansion: Expansion
    searched: Searched
    reranked: tuple[Reranked, ...] = ()


@dataclass(frozen=True)
class System:
    """What is evaluated."""

    retriever: Stage
    setup: Setup = field(default_factory=Setup, compare=False, repr=False)
    expander: Expander | None = None
    rerankers: tuple[Reranker, ...] = ()
    expansions: dict[str, Expansion] = field(default_factory=dict, compare=False, repr=False)
    """What was expanded in this run. Systems that share it ask once, however many retrievers search the texts."""

    @classmethod
    def parse(cls, spec: str, setup: Setup | None = None) -> System:
        """Return the system that a spec names; those given the same setup share what they expand."""
        from r2med.system.assembly import assemble

        return assemble(spec, setup or Setup())

    @cached_property
    def name(self) -> str:
        """The spec in its canonical form; settings at their defaults are left out."""
        stages = [] if self.expander is None else [self.expander.name]
        return ARROW.join([*stages, str(self.retriever), *(reranker.name for reranker in self.rerankers)])

    def __str__(self) -> str:
        return self.name

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for what would stop the system on one of the datasets; nothing is asked or searched."""
        check([self.expander, *self.rerankers], datasets)
        for dataset in datasets:
            self._opened.describe(dataset)

    def describe(self, dataset: Dataset, store: Store) -> dict[str, Any]:
        """Return every setting a score depends on, the generated texts by their fingerprint."""
        return {
            "retriever": self._opened.describe(dataset),
            "expansion": self.expander.describe(dataset) if self.expander else None,
            "generations": self.expand(dataset, store).fingerprint,
            **({"rerank": [reranker.describe(dataset) for reranker in self.rerankers]} if self.rerankers else {}),
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
        """Search a dataset and rerank. What was searched, scored or answered before is read back."""
        expansion = self.expand(dataset, store)
        # A reranker sees as many candidates as it looks at, even if fewer are wanted in the end.
        wide = max(k, *(reranker.depth for reranker in self.rerankers)) if self.rerankers else k
        searched = cached_search(self._opened, dataset, expansion.queries, wide, store)
        run, reranked = searched.run, []
        for reranker in self.rerankers:
            reranked.append(reranker.rerank(dataset, expansion.queries, run, store))
            run = reranked[-1].run
            for notice in (*_notices(run, reranker, len(dataset.corpus)), *reranked[-1].notices):
                log.info("%s", notice)
        settings = {**self.describe(dataset, store), "k": k}
        return Outcome(run.without({}, k) if wide > k else run, settings, expansion, searched, tuple(reranked))

    @cached_property
    def _opened(self) -> Retriever:
        opened: Retriever = self.retriever.open(self.setup)
        return opened


def _notices(run: Run, reranker: Reranker, documents: int) -> list[str]:
    """Return what is odd about a reranker's candidates; where there are none at all, rerankers say so themselves."""
    bare, count, longest = int((run.found == 0).sum()), len(run.queries), int(run.found.max(initial=0))
    notices = [f"{reranker.name}: {bare} of {count} queries have no candidates"] if 0 < bare < count else []
    # A corpus smaller than the depth is no surprise; a run that is shorter may be another than was meant.
    if 0 < longest < reranker.depth <= documents:
        notices.append(f"{reranker.name}: no ranking has more than {longest} documents, all of them are reranked")
    return notices
