"""All conversations of a dataset, advanced together: one call of the LLM and one search for all that wait."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from r2med.agents.contracts import Agent, Ask, Conversation, Failed, Look, Read
from r2med.agents.dialogue import Dialogue, joined
from r2med.agents.sources import Source, Wanted
from r2med.data.dataset import Query
from r2med.llm.contracts import ChatModel, ChatRequest, Failure, RawAnswer


@dataclass(frozen=True)
class Talked:
    """How the conversations ended, and every answer that the LLM gave."""

    conversations: tuple[Conversation, ...]
    answers: tuple[RawAnswer | Failure, ...]


def talk(agent: Agent, dialogue: Dialogue, llm: ChatModel, source: Source, queries: Sequence[Query]) -> Talked:
    """Lead every query's conversation to its end; what fails in one is no matter of the others."""
    # From here on a query is its text: an agent is given nothing else of it.
    all_of_them = [agent.start(query.text) for query in queries]
    answers: list[RawAnswer | Failure] = []
    while live := [place for place, each in enumerate(all_of_them) if not each.over]:
        requests = dict(_requests(agent, dialogue, all_of_them, live))
        given = llm.answers(list(requests.values())) if requests else []
        answers += given
        for place, answer in zip(requests, given, strict=True):
            all_of_them[place] = _answered(agent, all_of_them[place], answer)
        _search(agent, source, all_of_them, queries)
    return Talked(tuple(all_of_them), tuple(answers))


def _requests(
    agent: Agent, dialogue: Dialogue, conversations: list[Conversation], live: Sequence[int]
) -> Iterable[tuple[int, ChatRequest]]:
    for place in live:
        while isinstance(conversations[place].wait, Ask | Read):
            if (request := dialogue.request(conversations[place])) is not None:
                yield place, request
                break
            conversations[place] = agent.too_long(conversations[place])


def _answered(agent: Agent, conversation: Conversation, answer: RawAnswer | Failure) -> Conversation:
    if isinstance(answer, RawAnswer):
        return agent.wrote(conversation, joined(answer))
    if answer.kind == "context_length":  # the server counts tokens otherwise than we do
        return agent.too_long(conversation)
    return conversation.now(Failed(answer.kind, answer.message))


def _search(agent: Agent, source: Source, conversations: list[Conversation], queries: Sequence[Query]) -> None:
    waiting = [(place, each.wait.query) for place, each in enumerate(conversations) if isinstance(each.wait, Look)]
    if not waiting:
        return
    wanted = [Wanted(queries[place].id, text, queries[place].excluded) for place, text in waiting]
    for (place, _), found in zip(waiting, source.search(wanted), strict=True):
        if isinstance(found, Failure):
            conversations[place] = conversations[place].now(Failed(found.kind, found.message))
        else:
            conversations[place] = agent.found(conversations[place], found)
