"""A system is expansion → retriever → rerankers. It is parsed from a spec, prints as that spec, and runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import numpy as np

from r2med.data.dataset import Dataset, Query
from r2med.data.runs.run import Run
from r2med.foundation.core import stages
from r2med.foundation.core.approximation import Approximation
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError, nearest
from r2med.foundation.core.keys import key_of
from r2med.foundation.core.spec import ARROW, Call, Calls, encoded, joined_stages, printed_system
from r2med.foundation.core.stages import Stage
from r2med.foundation.engine.tracing import Span, current_span, span
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store, about
from r2med.systems.expand.expansion import AskingStage, Expander, Expansion, check
from r2med.systems.expand.recorded import Recorded
from r2med.systems.rerank.reranking import Reranked, Reranker
from r2med.systems.retrieve.apart import search_apart, searches_apart
from r2med.systems.retrieve.candidates import Candidates
from r2med.systems.retrieve.finds import finds_first
from r2med.systems.retrieve.ranking_spans import MAX_DOCUMENTS
from r2med.systems.retrieve.retriever import Retriever, Searched, SearchQuery, cached_search
from r2med.systems.system.stage_spans import traced_expand, traced_rerank
from r2med.systems.system.system_specs import read

log = logging.getLogger("r2med")

Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Outcome:
    """The results of running a system on a dataset, stage by stage."""

    run: Run
    expansion: Expansion
    searched: Searched
    reranked: tuple[Reranked, ...] = ()

    @property
    def cost(self) -> Cost:
        """The cost of all stages, including the preparation of the corpus."""
        of_search = self.searched.prepared + self.searched.cost
        return self.expansion.cost + of_search + total(stage.cost for stage in self.reranked)


def _offline_if_asked(method: Method) -> Method:
    """Block the network during a method of a system if its setup is offline."""

    @wraps(method)
    def kept(self: System, *arguments: Any, **named: Any) -> Any:
        with self.runtime.network():
            return method(self, *arguments, **named)

    return cast(Method, kept)


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
        setup = runtime.setup
        calls = [list(stage) for stage in read(spec, setup.llm)]
        typed = spec if isinstance(spec, str) else printed_system(spec)
        before = _expansion(calls, typed)
        retriever = _retriever(calls, typed, before, setup)
        after = [_reranker(stage, typed, setup) for stage in calls]
        expander = None if before is None else stages.stage(_with_prompts(before, setup), "expand")
        return cls(retriever, expander, tuple(after), runtime)

    def expanded(self, call: Call) -> System:
        """Return this system with an expansion before it. Raises UserError if it has one already."""
        if self.expander is not None:
            spec = joined_stages((call, self.name))
            raise UserError(f"{self.expander} in {spec!r} is a second expansion: a system has one")
        return replace(self, expander=stages.stage(_with_prompts(call, self.runtime.setup), "expand"))

    def reranked(self, call: Call) -> System:
        """Return this system with one more reranker."""
        return replace(self, rerankers=(*self.rerankers, _reranker([call], str(call), self.runtime.setup)))

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
        return str(self.expander.feeding(self.retriever)) if self.expander else ""

    @_offline_if_asked
    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError if the system cannot run on one of the datasets. It is called before the first LLM call."""
        check((self._expander, *self._rerankers), datasets)
        for dataset in datasets:  # this finds missing weights
            self.stage_keys(dataset)

    @property
    def asking(self) -> dict[str, AskingStage]:
        """The stages that ask an LLM, by name. Each can preview its calls."""
        typed = (self.expander, *self.rerankers)
        bound: tuple[object, ...] = (self._expander, *self._rerankers)
        return {str(name): stage for name, stage in zip(typed, bound, strict=True) if isinstance(stage, AskingStage)}

    @_offline_if_asked
    def key(self, dataset: Dataset, expansion: Expansion) -> dict[str, Any]:
        """Return every setting that a score depends on, with a digest of the generated texts."""
        return {**self.stage_keys(dataset), "generations": expansion.digest}

    @_offline_if_asked
    def stage_keys(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that is known before an LLM is asked: those of `key` without the generated texts."""
        return {
            "expand": key_of(self._expander, dataset) if self._expander else None,
            "retrieve": key_of(self._retriever, dataset),
            "rerank": [key_of(reranker, dataset) for reranker in self._rerankers],
        }

    @property
    def recorded(self) -> Recorded | None:
        """The reader of recorded texts, if the expansion uses them."""
        return self._expander if isinstance(self._expander, Recorded) else None

    @contextmanager
    def traced(self, dataset: Dataset) -> Iterator[Span | None]:
        """Open the span of this system's work on a dataset. Inside another span it does nothing and yields None."""
        if current_span() is not None:
            yield None
            return
        with span(self.name, "CHAIN", self.runtime.trace) as trace:
            if trace is not None:
                trace.set({"r2med.dataset": dataset.name, "r2med.queries": len(dataset.queries)})
            yield trace

    @_offline_if_asked
    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Return the queries to search with. If the system expands queries, this asks the LLM."""
        if self._expander is None:
            return Expansion(tuple(SearchQuery(query) for query in dataset.queries))
        expansion = traced_expand(self._expander, dataset, store, self.runtime.trace)
        _log(expansion.notices, store)
        return expansion

    @_offline_if_asked
    def run(
        self,
        dataset: Dataset,
        store: Store,
        k: int,
        expansion: Expansion | None = None,
    ) -> Outcome:
        """Search a dataset and rerank. Earlier searches, scores and answers are reused."""
        with about(dataset=dataset.label), self.traced(dataset):
            return self._run(dataset, store, k, expansion or self.expand(dataset, store))

    def _run(self, dataset: Dataset, store: Store, k: int, expansion: Expansion) -> Outcome:
        wide, queries = self._searched_depth(k), expansion.queries
        searched = search_apart(self._retriever, dataset, queries, wide, store, timed=True)
        if expansion.rankings:
            run = finds_first(searched.run, expansion.rankings, dataset.corpus, wide)
            searched = replace(searched, run=run)
        run, reranked = searched.run, []
        for stage, reranker in zip(self.rerankers, self._rerankers, strict=True):
            reranked.append(traced_rerank(reranker, dataset, expansion.queries, run, store))
            run = reranked[-1].run
            odd = _odd_candidates(run, str(stage), reranker.depth, len(dataset.corpus))
            _log((*odd, *reranked[-1].notices), store)
        return Outcome(run.without({}, k) if wide > k else run, expansion, searched, tuple(reranked))

    @_offline_if_asked
    def approximations(
        self, dataset: Dataset, store: Store, k: int, expansion: Expansion
    ) -> dict[str, tuple[Approximation, ...]]:
        """Return kind of stage -> recall of its approximate searches; empty if the searches are exact."""
        last = searches_apart(self._retriever, dataset, expansion.queries, self._searched_depth(k))
        searches = {"expand": expansion.searches, "retrieve": last}
        with about(dataset=dataset.label):
            return {
                kind: tuple(each for search in made for each in search.approximations(store))
                for kind, made in searches.items()
            }

    def _searched_depth(self, k: int) -> int:
        """Return the depth of the search. It is at least the depth of every reranker, even if k is smaller."""
        return max([k, *(reranker.depth for reranker in self._rerankers)])

    @_offline_if_asked
    def answer(self, dataset: Dataset, question: str, k: int, store: Store) -> Outcome:
        """Return the k best documents for a question. If the dataset has a query with this text, that query is used.

        Raises UserError if a stage cannot run. The outcome reports failed LLM calls, as for a dataset.
        """
        own = dataset.by_text.get(" ".join(question.split()))
        if own is None and isinstance(self._expander, Recorded):
            raise UserError(
                f"{self.expander} has texts only for the {len(dataset.by_text)} questions of {dataset.name}: "
                "ask one of them, or choose a system that asks an LLM"
            )
        asked = replace(dataset, queries=(own or Query("question", question),))
        # Two systems must not ask the same question at once. The second one reuses the answer of the first.
        with self.traced(asked) as trace:
            if trace is not None:
                trace.set_content({"input.value": question})
            with self.runtime.turn(("question", self.expansion_name, question)):
                expansion = self.expand(asked, store)
            outcome = self.run(asked, store, k, expansion)
            if trace is not None:
                found = [identifier for identifier, _ in outcome.run.top(asked.queries[0].id, MAX_DOCUMENTS)]
                trace.set({"output.value": json.dumps(found), "output.mime_type": "application/json"})
            return outcome

    @_offline_if_asked
    def live(self, dataset: Dataset, store: Store) -> LiveSystem:
        """Return the system ready for single questions: its corpus is indexed and its models are loaded.

        Systems that are given one live store share what they open and what LLMs answer. Raises UserError for what
        would stop the system.
        """
        live = store.with_policy("live")
        # Models must stay loaded, so that no question waits for weights.
        system = replace(self, runtime=self.runtime.serving(live))
        with about(dataset=dataset.label):
            system.check([dataset])
            system._warm_up(dataset, live)
        return LiveSystem(system, dataset, live)

    def _warm_up(self, dataset: Dataset, store: Store) -> None:
        """Load the weights of all stages, so that the first question does not wait for them."""
        queries = (SearchQuery(Query("", "warm up")),)
        cached_search(self._retriever, dataset, queries, 1, store)
        first = Run.ranked([""], [(np.zeros(1, np.int32), np.ones(1, np.float32))], dataset.corpus)
        for reranker in self._rerankers:
            if not isinstance(reranker, AskingStage):
                reranker.rerank(dataset, queries, first, store)

    @cached_property
    def _expander(self) -> Expander | None:
        expander = self.expander and self.expander.feeding(self.retriever)
        return cast(Expander, stages.bound(expander, self.runtime)) if expander else None

    @cached_property
    def _retriever(self) -> Retriever:
        return cast(Retriever, stages.bound(self.retriever, self.runtime))

    @cached_property
    def _rerankers(self) -> tuple[Reranker, ...]:
        return tuple(stages.bound(stage, self.runtime) for stage in self.rerankers)


@dataclass(frozen=True)
class LiveSystem:
    """A system that answers single questions. Any thread may use it. No data of a question is kept."""

    system: System
    dataset: Dataset
    store: Store

    @property
    def name(self) -> str:
        """The system's name."""
        return self.system.name

    def answer(self, question: str, k: int) -> Outcome:
        """Return the k best documents for a question, as `System.answer` does."""
        return self.system.answer(self.dataset, question, k, self.store)


def _log(notices: Iterable[str], store: Store) -> None:
    """Log notices. Notices about a live question are not logged, because its outcome has them."""
    for notice in notices if store.keeps_questions else ():
        log.info("%s", notice)


def _expansion(calls: list[list[Call]], spec: str) -> Call | None:
    """Remove the expansion from the front of the stages and return it, if there is one."""
    if not _is(calls[0], "expand"):
        return None
    [call] = calls.pop(0)
    if calls and _is(calls[0], "expand"):
        raise UserError(f"{calls[0][0]} in {spec!r} is a second expansion: a system has one")
    return call


def _retriever(calls: list[list[Call]], spec: str, before: Call | None, setup: Setup) -> Stage:
    """Remove the retriever from the front of the stages and return it. Candidates of the setup replace a retriever."""
    anybody = tuple(stages.PREFIXES["rerank"])
    if setup.candidates is not None:
        if not calls or not (_is(calls[0], "rerank") or calls[0][0].name.startswith(anybody)):
            raise UserError(
                f"{spec!r}: Setup(candidates={str(setup.candidates)!r}) is what was retrieved: name "
                "the rerankers that follow it"
            )
        return Candidates.at(setup.candidates)
    if not calls:
        raise UserError(f"{spec!r} is an expansion: add a retriever, as in {before}{ARROW}bm25")
    first = calls.pop(0)
    if _is(first, "rerank"):
        raise UserError(
            f"{first[0]} is a reranker: put a retriever before it, as in bm25{ARROW}{first[0]}, "
            "or give a run with Setup(candidates='FILE')"
        )
    if calls and before is None and len(first) == 1:
        _check_known(first[0].name, spec)
    return stages.retriever(first)


def _check_known(name: str, spec: str) -> None:
    """Raise UserError if the first stage is neither an expansion nor a retriever. The message suggests both kinds."""
    if stages.kind_of(name) is None and not name.startswith(tuple(stages.PREFIXES["retrieve"])):
        expansions = stages.names("expand")
        hint = nearest(name, (*expansions, *stages.names("retrieve")))
        raise UserError(f"no expansion or retriever {name!r}{hint} in {spec!r}: r2med list stages shows all")


def _reranker(calls: Sequence[Call], spec: str, setup: Setup) -> Stage:
    if len(calls) > 1:
        raise UserError(f"{'+'.join(map(str, calls))} in {spec!r}: rerankers cannot be fused; join them by arrows")
    [call] = calls
    if _is(calls, "expand"):
        raise UserError(f"{call} in {spec!r} is an expansion: put it before the retriever")
    deep = replace(call, depth=setup.depth if call.depth is None else call.depth)
    return stages.stage(_with_prompts(deep, setup), "rerank")


def _is(calls: Sequence[Call], kind: stages.Kind) -> bool:
    return len(calls) == 1 and stages.kind_of(calls[0].name) == kind


def _with_prompts(call: Call, setup: Setup) -> Call:
    """Return a call with the prompt set of the setup as a setting, so that two prompt sets are two systems."""
    kind = stages.kind_of(call.name)
    if not setup.prompts or kind is None or "prompts" in dict(call.settings):
        return call
    if "prompts" not in stages.settings_of(stages.stage_class(call.name, kind)) or _is_recorded(call, kind, setup):
        return call
    return replace(call, settings=(*call.settings, ("prompts", encoded(setup.prompts))))


def _is_recorded(call: Call, kind: stages.Kind, setup: Setup) -> bool:
    return kind == "expand" and (setup.recorded or call.arguments == ("author",))


def _odd_candidates(run: Run, name: str, depth: int, documents: int) -> list[str]:
    """Return notices about missing or few candidates. If there are no candidates at all, rerankers report it."""
    bare, count, longest = int((run.found == 0).sum()), len(run.queries), int(run.found.max(initial=0))
    notices = [f"{name}: {bare} of {count} queries have no candidates"] if 0 < bare < count else []
    # Rankings shorter than the depth are normal in a small corpus. In a large one, the run may be the wrong file.
    if 0 < longest < depth <= documents:
        notices.append(f"{name}: no ranking has more than {longest} documents; all of them are reranked")
    return notices
