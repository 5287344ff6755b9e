"""Run the conversations of an agent. All conversations that wait share one LLM call and one search."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from r2med.data import Query
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.errors import unknown
from r2med.models.llm.chat import ChatModel, ChatRequest, Failure, Message, RawAnswer, Sampling, finish_reason
from r2med.models.llm.costs import dollars, request_tokens
from r2med.models.llm.llm_cards import LLMCard
from r2med.models.prompts.templates import Template
from r2med.systems.agents.agent_state import Agent, AwaitModel, AwaitReading, AwaitSearch, Conversation
from r2med.systems.agents.sources import Source
from r2med.systems.retrieve.retriever import NO_REPORT, SearchReport

MIN_ANSWER_TOKENS = 128
"""Minimum number of tokens for a last answer. With fewer, the model is not called."""
MAX_TEMPLATE_TOKENS = 64
"""Maximum number of tokens that a chat template adds to a prompt."""

CHAT_TEMPLATES: Mapping[str, str] = {
    "chatml": "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n",
    # QwQ's own template opens the thoughts. Without this the model may skip them.
    "chatml-think": (
        "<|im_start|>system\n{system}<|im_end|>\n<|im_start|>user\n{user}<|im_end|>\n<|im_start|>assistant\n<think>\n"
    ),
    "deepseek": "{system}<｜User｜>{user}<｜Assistant｜><think>\n",
    "gemma": "<start_of_turn>user\n{system}\n\n{user}<end_of_turn>\n<start_of_turn>model\n",
    "harmony": "<|start|>system<|message|>{system}<|end|><|start|>user<|message|>{user}<|end|><|start|>assistant",
    "llama3": (
        "<|start_header_id|>system<|end_header_id|>\n\n{system}<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\n{user}<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    ),
    "plain": "{system}\n\n{user}\n\n",
}
"""Name -> chat template of a raw text that the model continues. The backend adds the BOS token."""

_MARK = re.compile(
    r"<(?=\|(?!(?:begin|end)_search_(?:query|result)\|>)[^|<>\s]{1,64}\|>)"  # <|im_end|>, but not Search-o1's marks
    r"|<(?=｜[^｜<>\n]{1,64}｜>)"
    r"|<(?=(?:start_of_turn|end_of_turn|bos|eos|pad|unk|/?s)>)"
    r"|\[(?=/?INST\]|/?SYSTEM_PROMPT\])"
)
"""The start of a special token of a chat template. In a raw prompt, a server would obey the token."""


def chat_template(name: str) -> Template:
    """Return the chat template of this name. Raises UserError if there is none."""
    if name not in CHAT_TEMPLATES:
        raise unknown("chat template", name, CHAT_TEMPLATES)
    return Template(name, CHAT_TEMPLATES[name])


def without_marks(text: str) -> str:
    """Return the text with a space inside each special token, so that a document cannot end the user's turn."""
    return _MARK.sub(lambda match: f"{match[0]} ", text)


@dataclass(frozen=True)
class SpendingLimit:
    """The largest number of tokens and dollars of a conversation; 0 for no limit. It is looked at before each turn.

    A conversation that reached it is treated as one that filled the context: the model is called for the last time.
    """

    tokens: int = 0
    dollars: float = 0.0
    card: LLMCard | None = None
    """The LLM with its prices."""

    def reached(self, conversation: Conversation) -> bool:
        """Return True if a conversation has spent what it may."""
        read = sum(turn.prompt_tokens for turn in conversation.turns)
        wrote = sum(turn.completion_tokens for turn in conversation.turns)
        spent = dollars(self.card, read, wrote) if self.card and self.dollars else 0.0
        return bool((self.tokens and read + wrote >= self.tokens) or (self.dollars and spent >= self.dollars))


@dataclass(frozen=True)
class Dialogue:
    """The settings of all calls of one LLM. `sampling.max_tokens` is the limit of a turn."""

    system: str
    sampling: Sampling
    context_length: int
    stop: tuple[str, ...]
    template: str = ""
    """The chat template of a raw text. If it is empty, messages are sent, and the server applies its own template."""
    reading: Sampling | None = None
    """Sampling settings for reading documents. None means those of a turn."""
    tools: str = ""
    """The tools that the model may call, as in `ChatRequest`."""
    limit: SpendingLimit = SpendingLimit()

    def request(self, conversation: Conversation) -> ChatRequest | None:
        """Return the next request; None if it does not fit the context or the limits of the conversation.

        A last answer may be shorter to fit.
        """
        state = conversation.state
        if not conversation.search_off and self.limit.reached(conversation):
            return None
        reads = isinstance(state, AwaitReading)
        if isinstance(state, AwaitReading):
            request = self._rendered((Message("user", state.prompt),), self.reading or self.sampling)
        else:
            request = self._rendered(conversation.parts, replace(self.sampling, stop=self.stop))
        limit = request.sampling.max_tokens or MIN_ANSWER_TOKENS
        room = self.context_length - request_tokens(request)
        if room >= limit:
            return request
        if not (reads or conversation.search_off) or room < min(limit, MIN_ANSWER_TOKENS):
            return None
        return replace(request, sampling=replace(request.sampling, max_tokens=room))

    def _rendered(self, parts: Sequence[Message], sampling: Sampling) -> ChatRequest:
        if not self.template:
            return ChatRequest(messages(self.system, parts), sampling, tools=self.tools)
        # The special tokens in the model's own text stay intact.
        question, *rest = (part.content if part.role == "assistant" else without_marks(part.content) for part in parts)
        opening = chat_template(self.template).render({"system": self.system, "user": question})
        return ChatRequest((), sampling, prompt=opening + "".join(rest))


def messages(system: str, parts: Sequence[Message]) -> tuple[Message, ...]:
    """Return the transcript as chat messages. Notices and documents become messages of the user."""
    nonempty = [part for part in parts if part.content.strip() or part.calls]  # APIs refuse an empty message
    turns: list[Message] = []
    for role, group in groupby(nonempty, lambda part: part.role):
        turn = list(group)
        if role == "tool" or any(part.calls for part in turn):  # each call has one result of its own
            turns += turn
        else:
            turns.append(Message(role, "\n\n".join(part.content.strip() for part in turn)))
    return (Message("system", system), *turns) if system else tuple(turns)


def as_completion(answer: RawAnswer) -> RawAnswer:
    """Return an answer as one text. Some servers put the reasoning in a separate field, and it may hold a search."""
    text, reasoning = answer.content, answer.reasoning
    if reasoning.strip():
        # Without other text, the model stopped inside its thoughts, so they stay open.
        text = f"<think>{reasoning}" + (f"</think>{text}" if text.strip() else "")
    return replace(answer, content=text, reasoning="", finish_reason=finish_reason(answer.finish_reason))


@dataclass(frozen=True)
class Finished:
    """The finished conversations, all answers of the LLM, and the cost of the searches."""

    conversations: tuple[Conversation, ...]
    answers: tuple[RawAnswer | Failure, ...]
    searching: Cost = NOTHING
    prepared: Cost = NOTHING
    """The cost of preparing the corpus, which is not part of `searching`."""
    report: SearchReport = NO_REPORT
    """What happened inside the searches, if these ask LLMs or have several stages."""


def converse(agent: Agent, dialogue: Dialogue, llm: ChatModel, source: Source, queries: Sequence[Query]) -> Finished:
    """Run the conversation of every query to its end. A failure in one does not affect the others."""
    # The agent gets only the text of a query, never its answer or other fields.
    conversations = [agent.start(query.text) for query in queries]
    answers: list[RawAnswer | Failure] = []
    searching, prepared, report = NOTHING, NOTHING, NO_REPORT
    while any(not conversation.over for conversation in conversations):
        requests = dict(_requests(agent, dialogue, conversations))
        batch = llm.answers(list(requests.values())) if requests else []
        answers += batch
        for index, answer in zip(requests, batch, strict=True):
            conversations[index] = _after(agent, conversations[index], answer)
        # Several times if a turn makes several searches, so that all conversations call the LLM together again.
        while waiting := _searches(conversations):
            # The search also gets only the text, and the documents to exclude.
            asked = [Query(queries[i].id, text, excluded=queries[i].excluded) for i, text in waiting.items()]
            outcome = source.search(asked)
            searching += outcome.cost
            report += outcome.report
            prepared = outcome.prepared  # the corpus is prepared once, so this cost is not summed
            for index, documents in zip(waiting, outcome.documents, strict=True):
                if isinstance(documents, Failure):
                    conversations[index] = conversations[index].waiting_for(documents)
                else:
                    conversations[index] = agent.on_documents(conversations[index], documents)
    return Finished(tuple(conversations), tuple(answers), searching, prepared, report)


def _searches(conversations: Sequence[Conversation]) -> dict[int, str]:
    """Return the query of each conversation that waits for documents."""
    return {i: each.state.query for i, each in enumerate(conversations) if isinstance(each.state, AwaitSearch)}


def _requests(agent: Agent, dialogue: Dialogue, conversations: list[Conversation]) -> Iterator[tuple[int, ChatRequest]]:
    """Yield the request of each waiting conversation. One that no longer fits is shortened, or ends."""
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
    if answer.kind == "context_length":  # the server counts tokens differently from us
        return agent.on_overflow(conversation)
    return conversation.waiting_for(answer)
