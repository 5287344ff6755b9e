"""Search agents that end with documents, as retrievers around a retriever: their settings, and how they rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.runtime.stages import Retrieving, Stage, argument, key_of, with_nested
from r2med.models.llm.chat import Failure
from r2med.models.llm.costs import failed_queries, failure_kinds, is_priced
from r2med.models.llm.llm_cards import LLMCard, resolve_llm
from r2med.models.prompts.templates import PROMPTS_MEANING
from r2med.systems.agents.agent_loop import SpendingLimit
from r2med.systems.agents.agent_stage import AgentRun, AgentStage, Conversed, source_of
from r2med.systems.agents.agent_state import Answered, Chosen, Conversation
from r2med.systems.agents.hidden_evidence import without_relevant
from r2med.systems.agents.remote_search import RemoteSearch, RemoteURL
from r2med.systems.agents.sources import LocalSearch
from r2med.systems.expand.recorded import AUTHOR
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.candidates import Candidates
from r2med.systems.retrieve.fused_rankings import WeightedRanking, fuse_rankings
from r2med.systems.retrieve.retriever import Searched, SearchQuery, SearchReport
from r2med.systems.retrieve.stored_search import stored_search

NOTHING_FOUND = Failure("empty", "the agent found no document")


class RankingAgent(AgentStage, kind="retrieve", takes="llm"):
    """The settings that all agents share which rank documents."""

    llm: str = argument("the LLM that searches and chooses")
    by: Retrieving = Field(
        default_factory=BM25,
        description="what the agent searches with: a retriever, or a system in brackets. What it finds for the query "
        "itself follows the documents of the agent",
    )
    remote: RemoteURL | None = Field(None, description="the URL of a /retrieve server that the agent searches instead")
    prompts: str = Field("", description=PROMPTS_MEANING)
    answers: bool = Field(
        False,
        description="yes: the LLM answers the question, cites documents and says how sure it is, as "
        "`r2med answer --condition searched` asks it to",
    )
    without: Literal["", "relevant"] = Field(
        "", description="relevant: hide the relevant documents and their copies from an agent that answers"
    )
    tokens: int = Field(0, ge=0, description="maximum number of tokens of a conversation; 0: no limit")
    dollars: float = Field(0.0, ge=0, description="maximum price of a conversation in dollars; 0: no limit")

    @model_validator(mode="after")
    def _hides_from_answers(self) -> Self:
        if self.without and not self.answers:
            raise ValueError("without=relevant is for an agent that answers: add answers=yes")
        return self

    @property
    def gives_answer(self) -> bool:
        """True if the agent answers the question."""
        return self.answers

    def spent_limit(self, card: LLMCard) -> SpendingLimit:
        """Return the largest number of tokens and dollars of a conversation."""
        return SpendingLimit(self.tokens, self.dollars, card)

    def answering(self, without: Literal["", "relevant"] = "") -> Self:
        """Return the same agent, which answers the question."""
        return self.model_copy(update={"answers": True, "without": without or self.without})

    @model_validator(mode="after")
    def _can_search_any_query(self) -> Self:
        if not self.remote and any(isinstance(each, Candidates) for each in with_nested(self.by)):
            raise ValueError(f"by={self.by} has rankings only for its own queries, so an agent cannot search with it")
        return self

    def own_queries(self) -> Stage | None:
        """Return this stage, because an agent writes its own queries."""
        return self

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the calls of an LLM, and the searches: those of the agent, and one for the query itself."""
        return [self.conversation_needs(size, runtime), *self.search_needs(self.by, size, runtime, own=1)]

    def llm_card(self, setup: Setup) -> LLMCard:
        """Return the card of the LLM. Raises UserError if there is none that can be asked, or no price to limit."""
        if setup.recorded or self.llm == AUTHOR:
            raise UserError(f"{self} returns a ranking, and there are no recorded ones: name an LLM that is called")
        card = resolve_llm(self.llm, setup)
        if self.dollars and not is_priced(card):
            raise UserError(
                f"{self}: the price of {card.spec} is not known, so dollars= cannot end a conversation: "
                "give tokens= instead"
            )
        return card

    def source(self, runtime: Runtime) -> LocalSearch | RemoteSearch:
        """Return what the agent searches."""
        return source_of(runtime, self.by, self.remote)

    def inside(self, runtime: Runtime) -> tuple[Stage, ...]:
        """Return the retriever that it searches with."""
        return (self.by,)

    def indexing(self) -> Stage:
        """Return the retriever whose index is prepared."""
        return self.by.indexing()

    def is_replayed(self, runtime: Runtime) -> bool:
        """Return True: the store keeps the searches, and the journal the turns of the LLM."""
        return True

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Templates are given by their digest."""
        key = super().key(dataset, runtime)
        if not self.remote:
            del key["search"]
        return {**key, "by": key_of(self.by, dataset, runtime)}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Run a conversation for every query. Return its list, its other finds, then what `by` finds for the query."""
        corpus = dataset.corpus
        dataset = replace(dataset, queries=tuple(each.query for each in queries))
        if self.without == "relevant":
            dataset = without_relevant(dataset)
        plain = [SearchQuery(query) for query in dataset.queries]
        conversed = AgentRun(self, dataset, runtime).converse()
        rankings = {query.id: ranking_of(each, corpus) for query, each in conversed.pairs}
        filled = stored_search(self.by, dataset, plain, k, runtime)
        run = finds_first(filled.run, {query: found for query, found in rankings.items() if found}, corpus, k)
        report = _report(conversed, rankings, filled)
        return Searched(run, conversed.cost + filled.cost, filled.prepared, report)


def _report(conversed: Conversed, rankings: Mapping[str, Sequence[str]], filled: Searched) -> SearchReport:
    """Return what happened in the conversations, in their searches, and in the search for the query itself."""
    bare = [query for query, ranking in rankings.items() if not ranking]
    failed = {**dict.fromkeys(bare, NOTHING_FOUND), **conversed.failed}
    outcome = "ended early: the documents found so far are ranked, the retriever's follow"
    conversations = SearchReport(
        len(bare),
        len(rankings),
        failure_kinds(failed.values()),
        failed_queries(failed.items()),
        counts=conversed.counts,
        notices=conversed.notices(list(failed.values()), outcome),
        traces={query.id: (conversed.trace(talk, rankings[query.id]),) for query, talk in conversed.pairs},
    )
    # What LLMs wrote for searches of the agent is not about the query itself.
    searches = replace(conversed.finished.report, notices=(), texts={}, traces={})
    return conversations + searches + filled.report


def ranking_of(conversation: Conversation, corpus: Corpus) -> tuple[str, ...]:
    """Return the documents that the agent chose, in its order, then the others by reciprocal rank of its searches.

    Without a choice the searches alone decide. The ranking is empty if no search found a document of the corpus.
    """
    searches = [turn.documents for turn in conversation.turns if turn.documents is not None]
    found = fused([[hit.id for hit in documents] for documents in searches], corpus)
    match conversation.state:
        case Chosen(chosen) | Answered(kept=chosen):
            pass
        case _:
            chosen = ()
    known = set(found)  # A remote server may return documents that the corpus does not have.
    return tuple(dict.fromkeys([*(each for each in chosen if each in known), *found]))


def fused(rankings: Sequence[Sequence[str]], corpus: Corpus) -> tuple[str, ...]:
    """Return the documents of several rankings in the order of reciprocal rank fusion.

    Documents that the corpus does not have are left out. Ties follow the rule of ties.py.
    """
    weighted = [
        WeightedRanking(0, corpus.rows(list(ranking)), np.zeros(len(ranking), np.float32), "rrf", 1.0)
        for ranking in rankings
    ]
    (found,) = fuse_rankings([""], weighted, sum(map(len, rankings)), corpus).id_lists()
    return tuple(found)


def finds_first(run: Run, finds: Mapping[str, Sequence[str]], corpus: Corpus, k: int) -> Run:
    """Return a run with the documents found for a query first, then its others in their order, k in all.

    `finds` are query id -> document ids, the best first. The scores of such a query count down to 1, because those of
    the retriever say nothing about the documents found. A query without finds keeps its ranking and its scores.
    """
    hits = []
    for line, query in enumerate(run.queries):
        rows, scores = run.rows[line], run.scores[line]
        rows, scores = rows[rows != NO_DOCUMENT], scores[rows != NO_DOCUMENT]
        if query in finds:
            found = corpus.rows(list(finds[query]))
            rows = np.concatenate([found, rows[~np.isin(rows, found)]])[:k].astype(np.int32)
            scores = np.arange(len(rows), 0, -1, dtype=np.float32)
        hits.append((rows, scores))
    return Run.ranked(run.queries, hits, corpus)
