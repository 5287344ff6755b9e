"""Agents with an LLM that follows a script: for each question the turns it takes, one after the other."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.foundation.core.cost import Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import ChatRequest, Failure, RawAnswer, ToolCall
from r2med.models.llm.llm_cards import LLMCard, Price
from r2med.systems.agents.ranking_agent import RankingAgent
from r2med.systems.agents.search_o1 import SearchO1, SearchO1Finds
from r2med.systems.agents.search_r1 import SearchR1, SearchR1Finds
from r2med.systems.agents.tool_agent import ToolAgent
from r2med.systems.agents.writing_agent import WritingAgent
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from support.ready import Ready, ScriptedRuntime
from support.scripted_chat import ScriptedChat

CARD = LLMCard(name="scripted", model="test/scripted", price=Price(prompt=1.0, completion=2.0))
DOCUMENTS = [
    ("a", "Angioedema\nangioedema of the face and lips"),
    ("b", "swollen knee after a fall"),
    ("c", "lips turn blue in the cold"),
    ("d", "hives and itching and angioedema"),
]
QUERIES = (Query("1", "swollen face"), Query("2", "blue lips"), Query("3", "itching"))

Turn = str | RawAnswer | Failure
Script = Mapping[str, Sequence[Turn]]

READING = "Documents:\n"
"""What only the prompt has in which documents are read."""


def dataset(queries: Sequence[Query] = QUERIES, documents: Sequence[tuple[str, str]] = DOCUMENTS) -> Dataset:
    return Dataset("tiny", tuple(queries), Corpus.of(documents), Qrels({"1": {"a": 1}}))


def said(text: str, finish: str = "stop", reasoning: str = "") -> RawAnswer:
    return RawAnswer(text, reasoning, finish, prompt_tokens=10, completion_tokens=5, seconds=0.5)


def scripted(script: Script, reading: Turn = "**Final Information** it fits") -> ScriptedChat:
    """Return an LLM that takes the turns of whichever question a request begins with; documents it reads alike."""
    taken = dict.fromkeys(script, 0)

    def reply(request: ChatRequest) -> Turn:
        opening = request.messages[1].content if request.prompt is None else request.prompt
        if READING in opening:
            return reading
        (key,) = [key for key in script if f":\n{key}" in opening]
        taken[key] += 1
        return script[key][taken[key] - 1]

    return ScriptedChat(reply)


STAGES: Mapping[str, type[WritingAgent]] = {"search-r1": SearchR1, "search-o1": SearchO1}
RANKING: Mapping[str, type[RankingAgent]] = {
    "agent": ToolAgent,
    "search-r1-finds": SearchR1Finds,
    "search-o1-finds": SearchO1Finds,
}


def calling(*calls: tuple[str, Any], text: str = "", finish: str = "tool_calls") -> RawAnswer:
    """Return a turn that calls tools; arguments that are not a text are written as JSON."""
    written = [(name, each if isinstance(each, str) else json.dumps(each)) for name, each in calls]
    made = tuple(ToolCall(f"random{number}", *each) for number, each in enumerate(written))
    return RawAnswer(text, "", finish, prompt_tokens=10, completion_tokens=5, seconds=0.5, calls=made)


def agent(method: str, llm: Any, card: LLMCard = CARD, prompts: Path | None = None, **settings: Any) -> Ready:
    """Return an agent that writes a text, in a runtime that asks this LLM."""
    return Ready(STAGES[method](llm=llm.name, **settings), _asking(llm, card, prompts))


def ranking_agent(method: str, llm: Any, card: LLMCard = CARD, prompts: Path | None = None, **settings: Any) -> Ready:
    """Return an agent that ranks documents, in a runtime that asks this LLM."""
    return Ready(RANKING[method](llm=llm.name, **settings), _asking(llm, card, prompts))


def _asking(llm: Any, card: LLMCard, prompts: Path | None) -> Runtime:
    # Nobody listens there. With an endpoint, an LLM without a card is asked, and no recorded texts are read.
    return ScriptedRuntime(llm, card, prompts, base_url="http://127.0.0.1:1/v1")


@dataclass(frozen=True)
class Ranked:
    """What an agent found and what is counted about it."""

    searched: Searched

    @property
    def rankings(self) -> dict[str, tuple[str, ...]]:
        """Query id -> the documents of the agent, without those that follow."""
        return {query: tuple(trace["finds"]) for query, trace in self.traces.items() if trace["finds"]}

    @property
    def traces(self) -> dict[str, Any]:
        return {query: trace for query, (trace,) in self.searched.report.traces.items()}

    @property
    def cost(self) -> Cost:
        return self.searched.cost

    def __getattr__(self, name: str) -> Any:
        return getattr(self.searched.report, name)


def ranked(retriever: Ready, data: Dataset, store: Store, k: int = 100) -> Ranked:
    """Return what an agent finds for the queries of a dataset."""
    return Ranked(retriever.search(data, [SearchQuery(query) for query in data.queries], k, store))
