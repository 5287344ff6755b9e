"""Agents with an LLM that follows a script: for each question the turns it takes, one after the other."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.data import Corpus, Dataset, Qrels, Query
from r2med.models.llm.chat import ChatRequest, Failure, RawAnswer, ToolCall
from r2med.models.llm.llm_cards import LLMCard, Price
from r2med.systems.agents.expander import AgentExpander, ConversingStage
from r2med.systems.agents.search_o1 import SearchO1
from r2med.systems.agents.search_r1 import SearchR1
from r2med.systems.agents.sources import LocalSearch
from r2med.systems.agents.tool_agent import ToolAgent
from r2med.systems.retrieve.bm25 import BM25, BM25Retriever
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


STAGES: Mapping[str, type[ConversingStage]] = {"search-r1": SearchR1, "search-o1": SearchO1, "agent": ToolAgent}


def calling(*calls: tuple[str, Any], text: str = "", finish: str = "tool_calls") -> RawAnswer:
    """Return a turn that calls tools; arguments that are not a text are written as JSON."""
    written = [(name, each if isinstance(each, str) else json.dumps(each)) for name, each in calls]
    made = tuple(ToolCall(f"random{number}", *each) for number, each in enumerate(written))
    return RawAnswer(text, "", finish, prompt_tokens=10, completion_tokens=5, seconds=0.5, calls=made)


def agent(
    method: str,
    llm: Any,
    source: LocalSearch | None = None,
    card: LLMCard = CARD,
    prompts: Path | None = None,
    **settings: Any,
) -> AgentExpander:
    stage = STAGES[method](llm=llm.name, **settings)
    return AgentExpander(stage, llm, card, prompts, source or LocalSearch(BM25Retriever(BM25())))
