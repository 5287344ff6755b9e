"""All conversations of a dataset, advanced together: one call of the LLM and one search for all that wait."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from r2med.agents.conversation import Agent, AwaitModel, AwaitReading, AwaitSearch, Conversation, Failed
from r2med.agents.dialogue import Dialogue, as_completion
from r2med.agents.sources import SearchRequest, Source
from r2med.cost import NOTHING, Cost
from r2med.data import Query
from r2med.llm.chat import ChatModel, ChatRequest, Failure, RawAnswer


@dataclass(frozen=True)
class Finished:
    """How the conversations ended, every answer that the LLM gave, and what searching took."""

    conversations: tuple[Conversation, ...]
    answers: tuple[RawAnswer | Failure, ...]
    searching: Cost = NOTHING


def converse(agent: Agent, dialogue: Dialogue, llm: ChatModel, source: Source, queries: Sequence[Query]) -> Finished:
    """Lead every query's conversation to its end; what fails in one is no matter of the others."""
    # From here on a query is its text: an agent is given nothing else of it.
    conversations = [agent.start(query.text) for query in queries]
    answers: list[RawAnswer | Failure] = []
    searching = NOTHING
    prepared = NOTHING
    while any(not conversation.over for conversation in conversations):
        requests = dict(_requests(agent, dialogue, conversations))
        batch = llm.answers(list(requests.values())) if requests else []
        answers += batch
        for index, answer in zip(requests, batch, strict=True):
            conversations[index] = _after(agent, conversations[index], answer)
        waiting = {i: each.state.query for i, each in enumerate(conversations) if isinstance(each.state, AwaitSearch)}
        if not waiting:
            continue
        asked = [SearchRequest(queries[index].id, text, queries[index].excluded) for index, text in waiting.items()]
        outcome = source.search(asked)
        searching += outcome.cost
        prepared = outcome.prepared  # done once, however often it is searched
        for index, documents in zip(waiting, outcome.documents, strict=True):
            if isinstance(documents, Failure):
                conversations[index] = conversations[index].waiting_for(Failed(documents.kind, documents.message))
            else:
                conversations[index] = agent.on_documents(conversations[index], documents)
    return Finished(tuple(conversations), tuple(answers), searching + Cost(dollars=prepared.dollars))


def _requests(agent: Agent, dialogue: Dialogue, conversations: list[Conversation]) -> Iterator[tuple[int, ChatRequest]]:
    """Yield what each waiting conversation asks; one that no longer fits is shortened until it does, or ends."""
    for index in range(len(conversations)):
        while isinstance(conversations[index].state, AwaitModel | AwaitReading):
            request = dialogue.request(conversations[index])
            if request is not None:
                yield index, request
                break
            conversations[index] = agent.on_overflow(conversations[index])


def _after(agent: Agent, conversation: Conversation, answer: RawAnswer | Failure) -> Conversation:
    if isinstance(answer, RawAnswer):
        return agent.on_completion(conversation, as_completion(answer))
    if answer.kind == "context_length":  # the server counts tokens otherwise than we do
        return agent.on_overflow(conversation)
    return conversation.waiting_for(Failed(answer.kind, answer.message))
