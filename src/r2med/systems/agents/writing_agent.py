"""Search agents that end with a text, as expansions: their settings, and the expander that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.core.spec import decoded
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.costs import failed_queries, failure_kinds
from r2med.models.llm.llm_cards import AnswerStyle, Cleaning, LLMCard, resolve_llm
from r2med.models.prompts.templates import PROMPTS_MEANING
from r2med.systems.agents.agent_stage import AgentRun, TaggedAgent, source_of
from r2med.systems.agents.agent_state import Answered, Conversation
from r2med.systems.agents.remote_search import RemoteSearch, RemoteURL
from r2med.systems.agents.sources import LocalSearch
from r2med.systems.expand.expansion import Expansion, Joining, QueryChoice
from r2med.systems.expand.recorded import RECORDED, Recorded, WritingStage, open_recorded
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.retriever import SearchReport


class WritingAgent(WritingStage, TaggedAgent, kind="expand", takes="llm"):
    """The settings that agents share which write a text. A subclass adds its limits, sampling and `agent`."""

    answer_style: ClassVar[AnswerStyle | None] = None
    """How the answer is marked in recorded texts. None means as in the LLM's card."""

    corpus: str = Field("", description="a dataset whose corpus is searched; empty: the dataset of the queries")
    remote: RemoteURL | None = Field(None, description="the URL of a /retrieve server to search with instead")
    query: QueryChoice = Field("", description="keep the query's own words in a search by words; empty: drop them")
    cleaning: Cleaning = Field(
        "strict",
        description="published: the answer follows the first marker, and a text without one counts whole",
    )
    prompts: str = Field("", description=PROMPTS_MEANING)

    @model_validator(mode="after")
    def _searches_in_one_place(self) -> Self:
        if self.remote and (self.corpus or self.by != BM25()):
            raise ValueError("remote= names a server that searches: by= and corpus= are for searches on this machine")
        return self

    def joining(self) -> Joining:
        """Return how the text of the agent is joined with the query."""
        return Joining().choose(self.query)

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the calls of an LLM, and the searches, unless a server or another corpus is searched."""
        if self.is_recorded(runtime):
            return [Needs(str(self), note=RECORDED)]
        texts = self.conversation_needs(size, runtime)
        if self.corpus:
            return [replace(texts, note=f"searches the corpus of {decoded(self.corpus)}, which is not counted")]
        return [texts, *self.search_needs(self.by, size, runtime)]

    def open_recorded(self, runtime: Runtime) -> Recorded | None:
        """Return the reader of recorded texts. None if an LLM is called."""
        return open_recorded(
            self, self.llm, self.joining(), runtime.setup, cleaning=self.cleaning, style=self.answer_style
        )

    def llm_card(self, setup: Setup) -> LLMCard:
        """Return the card of the LLM."""
        return resolve_llm(self.llm, setup).model_copy(update={"cleaning": self.cleaning})

    def source(self, runtime: Runtime) -> LocalSearch | RemoteSearch:
        """Return what the agent searches."""
        return source_of(runtime, self.by, self.remote, self.corpus)

    def varies(self, runtime: Runtime) -> bool:
        """Return True if another run can take another way: the LLM varies, or what it searches."""
        return not self.is_recorded(runtime) and super().varies(runtime)

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules of the retriever that the agent searches with."""
        return () if self.is_recorded(runtime) else super().modules(runtime)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Recorded texts are given by their digest."""
        recorded = self.recorded(runtime)
        return recorded.key(dataset) if recorded else super().key(dataset, runtime)

    def check(self, datasets: Sequence[Dataset], runtime: Runtime) -> None:
        """Raise UserError for a fault on one of these datasets, such as missing texts."""
        if recorded := self.recorded(runtime):
            recorded.check(datasets)
        else:
            super().check(datasets, runtime)

    def expand(self, dataset: Dataset, runtime: Runtime) -> Expansion:
        """Run a conversation for every query. A query without a text is searched unchanged and counted."""
        if recorded := self.recorded(runtime):
            return recorded.expand(dataset)
        if not dataset.queries:
            return Expansion.of(())
        conversed, joining = AgentRun(self, dataset, runtime).converse(), self.joining()
        failed = conversed.failed
        own = SearchReport(failure_kinds=failure_kinds(failed.values()), failed=failed_queries(failed.items()))
        both = own + conversed.finished.report
        outcome = "got no answer and are searched as they are"
        return Expansion.of(
            [joining.join(query, _texts(conversation)) for query, conversation in conversed.pairs],
            cost=conversed.cost + Cost(dollars=conversed.finished.prepared.dollars),
            counts=conversed.counts,
            failure_kinds=both.failure_kinds,
            failed=both.failed,
            cut_texts=conversed.cut_texts,
            notices=conversed.notices(list(failed.values()), outcome),
            traces={query.id: conversed.trace(conversation) for query, conversation in conversed.pairs},
        )


def _texts(conversation: Conversation) -> tuple[str, ...]:
    return (conversation.state.text,) if isinstance(conversation.state, Answered) else ()
