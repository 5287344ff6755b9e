"""A system is expansion → retriever → rerankers. It is parsed from a spec, prints as that spec, and runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset, Query
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import stated_or_measured
from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.core.spec import Call, Calls, joined_stages, parse, printed_system
from r2med.foundation.runtime import stages
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Stage, key_of
from r2med.foundation.store import Store
from r2med.systems.expand.expansion import Expansion
from r2med.systems.expand.generated_settings import GeneratedSettings
from r2med.systems.rerank.reranking import Reranked
from r2med.systems.retrieve.bm25.bm25_retriever import hint_at_language
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.retrieve.stored_search import stored_search
from r2med.systems.system.declared_system import check_expansion, completed, completed_call, declared
from r2med.systems.system.outcome import Outcome

log = logging.getLogger("r2med")


@dataclass(frozen=True)
class System:
    """A retrieval system. Its key, its name and its checks never ask an LLM and load no weights."""

    retriever: Stage
    """The settings of the retriever."""
    expander: Stage | None = None
    """The settings of the expansion, if there is one."""
    rerankers: tuple[Stage, ...] = ()
    """The settings of the rerankers, in order."""
    runtime: Runtime = field(default_factory=Runtime, compare=False, repr=False)
    """The runtime that the system works with."""

    @classmethod
    def parse(cls, spec: str | Calls, setup: Setup | Runtime | None = None) -> System:
        """Return the system of a spec. Raises UserError if a stage does not exist or is in a wrong position."""
        runtime = setup if isinstance(setup, Runtime) else Runtime(setup)
        calls, typed = (parse(spec), spec) if isinstance(spec, str) else (spec, printed_system(spec))
        declared_stages = declared(completed(calls, runtime.setup), typed, runtime.setup.candidates)
        return cls(*declared_stages, runtime.for_a_system())

    def expanded(self, call: Call) -> System:
        """Return this system with an expansion before it. Raises UserError if it has one already."""
        if self.expander is not None:
            spec = joined_stages((call, self.name))
            raise UserError(f"{self.expander} in {spec!r} is a second expansion: a system has one")
        expander = stages.stage_of(completed_call(call, self.runtime.setup), "expand")
        check_expansion(expander, self.retriever)
        return replace(self, expander=expander)

    def reranked(self, call: Call) -> System:
        """Return this system with one more reranker."""
        reranker = stages.stage_of(completed_call(call, self.runtime.setup, reranks=True), "rerank")
        return replace(self, rerankers=(*self.rerankers, reranker))

    @cached_property
    def name(self) -> str:
        """The spec in its canonical form. Settings with default values are left out."""
        parts = [self.expander, self.retriever, *self.rerankers]
        return joined_stages(stage for stage in parts if stage is not None)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"System({self.name!r})"

    @cached_property
    def expansion_name(self) -> str:
        """The name of the expansion before this retriever. Systems with the same name share the expanded queries."""
        return str(self._expander or "")

    @property
    def varies(self) -> bool:
        """True if another run can give another ranking. If not, one run says it all."""
        return any(stage.varies(self.runtime) for stage in self.main_stages)

    @property
    def repeat(self) -> int:
        """The number of the repeat, from 0. A system that does not vary has only repeat 0."""
        return self.runtime.setup.repeat if self.runtime.setup.repeat and self.varies else 0

    def in_repeat(self, repeat: int) -> System:
        """Return the same system in another repeat, in which LLMs are asked and shuffles are made anew."""
        if repeat == self.runtime.setup.repeat:
            return self
        return replace(self, runtime=self.runtime.with_settings(repeat=repeat))

    @property
    def only_searches(self) -> bool:
        """True if the system has neither an expansion nor a reranker nor an agent, also not in brackets."""
        inside = stages.with_nested(self.retriever)
        plain = all(stage.kind == "retrieve" and not stage.takes for stage in inside)
        return plain and self.expander is None and not self.rerankers

    def check_installed(self) -> None:
        """Raise MissingExtraError if a stage needs an optional part that is not installed. No data are needed."""
        for stage in self.main_stages:
            check_installed(str(stage), stages.modules_of(stage, self.runtime))

    def check(self, datasets: Sequence[Dataset], repeats: int = 1) -> None:
        """Raise UserError if the system cannot run on one of the datasets, in the first or the last of its repeats.

        It is called before the first LLM call.
        """
        with self.runtime.network():
            for stage in self.all_stages:
                stage.check(datasets, self.runtime)
            for dataset in datasets:
                self.stage_keys(dataset)  # this finds missing weights
                hint_at_language(self.retriever, dataset)
            if repeats > 1 and self.varies:  # there may be fewer trained models
                self.in_repeat(repeats - 1).check(datasets)

    @property
    def asking(self) -> dict[str, Stage]:
        """The stages that ask an LLM, by name. Each can preview its calls."""
        return {self._typed(stage): stage for stage in self.all_stages if stage.asks(self.runtime)}

    def key(self, dataset: Dataset, expansion: Expansion) -> dict[str, Any]:
        """Return every setting that a score depends on, with a digest of the generated texts."""
        return {**self.stage_keys(dataset), "generations": expansion.digest}

    def stage_keys(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that is known before an LLM is asked: those of `key` without the generated texts."""
        with self.runtime.network():
            keys: dict[str, Any] = {
                "expand": key_of(self._expander, dataset, self.runtime) if self._expander else None,
                "retrieve": key_of(self.retriever, dataset, self.runtime),
                "rerank": [key_of(reranker, dataset, self.runtime) for reranker in self.rerankers],
            }
            written_apart = isinstance(self.expander, GeneratedSettings) and self.expander.is_apart
            if written_apart and self.retriever.chooses_forms(self.runtime):
                keys["parts"] = "chosen"  # the retriever chooses which of the texts it searches
            return keys

    def _typed(self, stage: Stage) -> str:
        """Return the name of a stage as it was typed: an expansion is fed with the retriever."""
        return str(self.expander if stage is self._expander else stage)

    @property
    def recorded(self) -> tuple[Stage, ...]:
        """The stages that read recorded texts."""
        return tuple(stage for stage in self.all_stages if stage.is_recorded(self.runtime))

    def expand(self, dataset: Dataset) -> Expansion:
        """Return the queries to search with. If the system expands queries, this asks the LLM."""
        if self._expander is None:
            return Expansion(tuple(SearchQuery(query) for query in dataset.queries))
        with self.runtime.network():
            expansion = timed_expansion(self._expander, dataset, self.runtime)
        self._log(expansion.notices)
        return expansion

    def run(self, dataset: Dataset, k: int, expansion: Expansion | None = None) -> Outcome:
        """Search a dataset and rerank. Earlier searches, scores and answers of the store are reused."""
        expansion = expansion or self.expand(dataset)
        with self.runtime.network():
            return self._run(dataset, self.runtime.about(dataset.label), k, expansion, self._log)

    def with_store(self, store: Store) -> System:
        """Return the system over another store, or over the same one with another policy."""
        return replace(self, runtime=self.runtime.with_store(store))

    def _log(self, notices: Iterable[str]) -> None:
        """Log notices. Notices about a live question are not logged, because its outcome has them."""
        for notice in notices if self.runtime.store.keeps_questions else ():
            log.info("%s", notice)

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Search as a part of another system, which gets all costs and notices. Other queries than the dataset's may
        be searched. If the system expands queries, it uses only their own text.
        """
        asked = replace(dataset, queries=tuple(each.query for each in queries))
        if self._expander is None:
            expansion = Expansion(tuple(queries))
        else:
            expansion = timed_expansion(self._expander, asked, self.runtime)
        notices = list(expansion.notices)
        outcome = self._run(asked, self.runtime, k, expansion, notices.extend)
        return outcome.searched_as_part(notices, expands=self._expander is not None)

    def _run(
        self, dataset: Dataset, runtime: Runtime, k: int, expansion: Expansion, note: Callable[[Iterable[str]], None]
    ) -> Outcome:
        wide = max([k, *map(_depth_of, self.rerankers)])  # every reranker gets its candidates, even if k is smaller
        queries = expansion.queries
        searched = stored_search(self.retriever, dataset, queries, wide, runtime)
        note(searched.report.notices)
        run, reranked = searched.run, []
        for reranker in self.rerankers:
            reranked.append(_timed_reranking(reranker, dataset, queries, run, runtime))
            run = reranked[-1].run
            if runtime.store.keeps_questions:
                note(_odd_candidates(run, str(reranker), _depth_of(reranker), len(dataset.corpus)))
            note(reranked[-1].notices)
        return Outcome(run.without({}, k) if wide > k else run, expansion, searched, tuple(reranked))

    def answer(self, dataset: Dataset, question: str, k: int) -> Outcome:
        """Return the k best documents for a question. If the dataset has a query with this text, that query is used.

        Raises UserError if a stage cannot run. The outcome reports failed LLM calls, as for a dataset.
        """
        own = dataset.by_text.get(" ".join(question.split()))
        if own is None and self.recorded:
            raise UserError(
                f"{self._typed(self.recorded[0])} has texts only for the {len(dataset.by_text)} questions of "
                f"{dataset.name}: ask one of them, or choose a system that asks an LLM"
            )
        asked = replace(dataset, queries=(own or Query("question", question),))
        # Two systems must not ask the same question at once. The second one reuses the answer of the first.
        with self.runtime.turn(("question", self.expansion_name, question)):
            expansion = self.expand(asked)
        with (
            self.runtime.turn(("question", str(self.retriever), question))
            if self.retriever.is_replayed(self.runtime)
            else nullcontext()
        ):
            return self.run(asked, k, expansion)

    def live(self, dataset: Dataset) -> LiveSystem:
        """Return the system ready for single questions: its corpus is indexed and its models are loaded.

        Systems over one live store share what they open and what LLMs answer. Raises UserError for what would stop the
        system.
        """
        # Models must stay loaded, so that no question waits for weights.
        system = replace(self, runtime=self.runtime.serving(self.runtime.store.with_policy("live")))
        system.check([dataset])
        with system.runtime.network():
            system._warm_up(dataset)
        return LiveSystem(system, dataset)

    def _warm_up(self, dataset: Dataset) -> None:
        """Load the weights of all stages, so that the first question does not wait for them."""
        runtime = self.runtime.about(dataset.label)
        queries = (SearchQuery(Query("", "warm up")),)
        first = Run.ranked([""], [(np.zeros(1, np.int32), np.ones(1, np.float32))], dataset.corpus)
        for stage in self.all_stages:
            if stage.asks(runtime) or stage.is_replayed(runtime):
                continue  # an LLM needs no warming up, and the other stages inside follow
            if stage.kind == "retrieve":
                stored_search(stage, dataset, queries, 1, runtime)
            elif stage.kind == "rerank":
                stage.rerank(dataset, queries, first, runtime)

    @property
    def all_stages(self) -> tuple[Stage, ...]:
        """The stages of the system, with those inside them."""
        return tuple(part for stage in self.main_stages for part in stages.with_inside(stage, self.runtime))

    @property
    def main_stages(self) -> tuple[Stage, ...]:
        """The expander, if there is one, the retriever and the rerankers, in order."""
        return (*filter(None, (self._expander,)), self.retriever, *self.rerankers)

    @cached_property
    def _expander(self) -> Stage | None:
        return self.expander and self.expander.feeding(self.retriever)


@dataclass(frozen=True)
class LiveSystem:
    """A system that answers single questions. Any thread may use it. No data of a question is kept."""

    system: System
    dataset: Dataset

    @property
    def name(self) -> str:
        """The system's name."""
        return self.system.name

    def answer(self, question: str, k: int) -> Outcome:
        """Return the k best documents for a question, as `System.answer` does."""
        return self.system.answer(self.dataset, question, k)


def timed_expansion(expander: Stage, dataset: Dataset, runtime: Runtime) -> Expansion:
    """Return the expanded queries of a dataset. A stage that states no cost is timed, so that it never looks free."""
    started = time.perf_counter()
    runtime = runtime.about(dataset.label)
    expansion: Expansion = expander.expand(dataset, runtime)
    if expander.is_recorded(runtime):  # what its texts cost is not known here
        return expansion
    return replace(expansion, cost=stated_or_measured(expansion.cost, started))


def _timed_reranking(
    reranker: Stage, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, runtime: Runtime
) -> Reranked:
    started = time.perf_counter()
    reranked: Reranked = reranker.rerank(dataset, queries, run, runtime)
    return replace(reranked, cost=stated_or_measured(reranked.cost, started))


def _depth_of(reranker: Stage) -> int:
    """Return the number of candidates that a reranker looks at for each query."""
    depth: int = getattr(reranker, "depth", 0)
    return depth


def _odd_candidates(run: Run, name: str, depth: int, documents: int) -> list[str]:
    """Return notices about missing or few candidates. If there are no candidates at all, rerankers report it."""
    bare, count, longest = int((run.found == 0).sum()), len(run.queries), int(run.found.max(initial=0))
    notices = [f"{name}: {bare} of {count} queries have no candidates"] if 0 < bare < count else []
    # Rankings shorter than the depth are normal in a small corpus. In a large one, the run may be the wrong file.
    if 0 < longest < depth <= documents:
        notices.append(f"{name}: no ranking has more than {longest} documents; all of them are reranked")
    return notices
