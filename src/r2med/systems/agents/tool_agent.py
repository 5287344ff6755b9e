"""An agent with tools that returns a ranking: it searches, thinks, reads documents, and finishes with their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.stages import Bound, Retrieving, Stage, argument
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.llm.call_plans import with_calls
from r2med.models.llm.journaled import open_chat
from r2med.models.llm.llm_cards import LLMCard, missing_key, resolve_llm
from r2med.models.prompts.prompt_sets import PROMPTS_MEANING, find_set
from r2med.models.prompts.templates import Templates
from r2med.systems.agents.conversation import Agent
from r2med.systems.agents.expander import MAX_TOPK, MAX_TURNS, AgentExpander, ConversingStage, source_of
from r2med.systems.agents.remote_search import RemoteURL
from r2med.systems.agents.tool_rules import RESULT_TOKENS, ToolRules
from r2med.systems.agents.tools import MAX_DOCUMENTS, tools
from r2med.systems.expand.recorded import AUTHOR
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.candidates import Candidates
from r2med.systems.retrieve.fusion import Fusion

TURN_TOKENS = 8192
"""Maximum number of new tokens of a turn, unless the LLM's card says otherwise."""


class ToolAgent(ConversingStage, kind="expand", needs="llm"):
    """Let an LLM search, read and choose documents with tools; the ranking that it ends with comes first."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "calls")

    name: str = "agent"
    llm: str = argument("the LLM that searches and chooses")
    turns: int = Field(20, ge=1, le=MAX_TURNS, description="maximum number of turns of the LLM")
    topk: int = Field(
        10, ge=1, le=MAX_TOPK, description="number of documents that a search returns if the LLM does not say"
    )
    searches: int = Field(20, ge=1, le=MAX_TURNS, description="maximum number of searches")
    calls: Literal["native", "tags"] = Field(
        "native", description="native: tool calls of the server; tags: calls in the text, for LLMs without tool calls"
    )
    by: Retrieving | None = Field(
        None, description="the retriever that the agent searches with; empty: the retriever after the arrow"
    )
    remote: RemoteURL | None = Field(None, description="the URL of a /retrieve server to search with instead")
    prompts: str = Field("", description=PROMPTS_MEANING)

    @model_validator(mode="after")
    def _settings_agree(self) -> Self:
        if self.remote and self.by:
            raise ValueError("remote= names a server that searches: by= is for searches on this machine")
        if self.by and _reads_a_run(self.by):
            raise ValueError(f"by={self.by} has rankings only for its own queries, so an agent cannot search with it")
        return self

    def feeding(self, retriever: Stage) -> Self:
        """Return the agent that searches with a retriever, unless it has its own search."""
        if self.by or self.remote:
            return self
        if _reads_a_run(retriever):
            raise UserError(f"{retriever} has rankings only for its own queries: give {self.name} a retriever, by=bm25")
        return self.model_copy(update={"by": retriever})

    @property
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation."""
        return self.turns

    @property
    def search_depth(self) -> int:
        """Number of documents of a search. The LLM is shown as many as it asks for. Servers may have a lower limit."""
        return self.topk if self.remote else max(self.topk, MAX_DOCUMENTS)

    def tools(self) -> str:
        """Return the tools that are offered in each request."""
        return tools(self.topk, self.search_depth) if self.calls == "native" else ""

    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""
        return card.agent_max_tokens or min(TURN_TOKENS, card.max_tokens)

    def growth(self, card: LLMCard) -> int:
        """Return the maximum number of tokens by which a transcript grows in a turn."""
        return self.turn_tokens(card) + _result_tokens(card)

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task."""
        how = templates.template(f"agent-{self.calls}", fields=()).text
        return ToolRules(
            templates.template(self.name, kind),
            how,
            self.calls == "native",
            self.turns,
            self.searches,
            self.topk,
            _result_tokens(card),
        )

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return the plan: LLM calls, and the searches with a retriever of its own."""
        plan = Plan(str(self), "asks an LLM turn by turn", missing=missing_key(self.llm, runtime.setup))
        asks = with_calls(plan, resolve_llm(self.llm, runtime.setup), None, 0, runtime)
        return [asks, *(self.by.plan(data, runtime) if self.by else [])]

    def bind(self, runtime: Runtime) -> Bound[Any]:
        """Return the expander that calls the LLM. Nothing is called yet."""
        if runtime.setup.recorded or self.llm == AUTHOR:
            raise UserError(f"{self} returns a ranking, and there are no recorded ones: name an LLM that is called")
        card = resolve_llm(self.llm, runtime.setup)
        source = source_of(runtime, self.by or BM25(), self.remote)
        prompts = find_set(self.prompts or runtime.setup.prompts)
        return AgentExpander(self, open_chat(card, runtime), card, prompts, source)


def _reads_a_run(retriever: Stage) -> bool:
    parts = retriever.parts if isinstance(retriever, Fusion) else (retriever,)
    return any(_reads_a_run(part) if isinstance(part, Fusion) else isinstance(part, Candidates) for part in parts)


def _result_tokens(card: LLMCard) -> int:
    return min(RESULT_TOKENS, card.context_length // 4)
