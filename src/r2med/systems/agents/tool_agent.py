"""An agent with tools that returns a ranking: it searches, thinks, reads documents, and finishes with their ids."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from r2med.foundation.core.search_steps import SEARCH_STEPS, SearchStep
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.templates import Templates
from r2med.systems.agents.agent_stage import MAX_TOPK, MAX_TURNS
from r2med.systems.agents.agent_state import Agent
from r2med.systems.agents.ranking_agent import RankingAgent
from r2med.systems.agents.tool_rules import RESULT_TOKENS, ToolRules
from r2med.systems.agents.tools import ANSWERING_TOOLS, MAX_DOCUMENTS, RANKING_TOOLS, tools

TURN_TOKENS = 8192
"""Maximum number of new tokens of a turn, unless the LLM's card says otherwise."""


class ToolAgent(RankingAgent):
    """Let an LLM search, read and choose documents with tools. Its list comes first, then all else that was found."""

    prompt_fields: ClassVar[tuple[str, ...] | None] = ("query", "calls")

    name: str = "agent"
    turns: int = Field(20, ge=1, le=MAX_TURNS, description="maximum number of turns of the LLM")
    topk: int = Field(
        10, ge=1, le=MAX_TOPK, description="number of documents that a search returns if the LLM does not say"
    )
    searches: int = Field(20, ge=1, le=MAX_TURNS, description="maximum number of searches")
    calls: Literal["native", "tags"] = Field(
        "native", description="native: tool calls of the server; tags: calls in the text, for LLMs without tool calls"
    )

    @property
    def max_calls(self) -> int:
        """Maximum number of LLM calls in a conversation."""
        return self.turns

    @property
    def max_searches(self) -> int:
        """Maximum number of searches in a conversation."""
        return self.searches

    @property
    def search_depth(self) -> int:
        """Number of documents of a search. The LLM is shown as many as it asks for. Servers may have a lower limit."""
        return self.topk if self.remote else max(self.topk, MAX_DOCUMENTS)

    def tools(self) -> str:
        """Return the tools that are offered in each request."""
        names = ANSWERING_TOOLS if self.answers else RANKING_TOOLS
        return tools(self.topk, self.search_depth, names) if self.calls == "native" else ""

    @property
    def template_name(self) -> str:
        """The name of the prompt template."""
        return "agent-answer" if self.answers else self.name

    @property
    def steps(self) -> tuple[SearchStep, ...]:
        """How far documents can come with this agent: it opens, cites and keeps them."""
        return SEARCH_STEPS

    def turn_tokens(self, card: LLMCard) -> int:
        """Return the maximum number of tokens of a turn."""
        return card.agent_max_tokens or min(TURN_TOKENS, card.max_tokens)

    def growth(self, card: LLMCard) -> int:
        """Return the maximum number of tokens by which a transcript grows in a turn."""
        return self.turn_tokens(card) + _result_tokens(card)

    def agent(self, templates: Templates, kind: str, card: LLMCard, room: int) -> Agent:
        """Return the agent for one kind of task."""
        how = templates.template(f"{self.template_name}-{self.calls}", fields=()).text
        return ToolRules(
            templates.template(self.template_name, kind, fields=("query", "calls")),
            how,
            self.calls == "native",
            self.turns,
            self.searches,
            self.topk,
            _result_tokens(card),
            self.answers,
        )


def _result_tokens(card: LLMCard) -> int:
    return min(RESULT_TOKENS, card.context_length // 4)
