"""From a conversation to what is sent, within the model's context: messages, or one text that it goes on with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from r2med.agents.chat_templates import chat_template
from r2med.agents.contracts import Conversation, Part, Read, Said
from r2med.llm.contracts import ChatRequest, Message, RawAnswer, Sampling
from r2med.llm.tokens import request_tokens
from r2med.text.unicode import to_unicode

LEAST = 128
"""Tokens that a last answer needs to be worth asking for."""
FRAME = 64
"""Tokens that a chat template puts around a prompt, at most."""


@dataclass(frozen=True)
class Dialogue:
    """How one LLM is asked. `sampling.max_tokens` is the limit of a turn."""

    system: str
    sampling: Sampling
    context_length: int
    stop: tuple[str, ...]
    template: str = ""
    """The chat template of a raw text; empty: messages are sent, and the server renders them."""

    def request(self, conversation: Conversation) -> ChatRequest | None:
        """Return what is to be asked; None where it does not fit. An agent's last answer may be shorter than others."""
        reading = isinstance(conversation.wait, Read)
        parts = (Part("user", conversation.wait.prompt),) if isinstance(conversation.wait, Read) else conversation.parts
        request = self._rendered(parts, () if reading else self.stop)
        limit = self.sampling.max_tokens or LEAST
        room = self.context_length - request_tokens(request)
        if room >= limit:
            return request
        if not (reading or conversation.search_off) or room < min(limit, LEAST):
            return None
        return replace(request, sampling=replace(request.sampling, max_tokens=room))

    def _rendered(self, parts: Sequence[Part], stop: tuple[str, ...]) -> ChatRequest:
        sampling = replace(self.sampling, stop=stop)
        if not self.template:
            return ChatRequest(messages(self.system, parts), sampling)
        opening = chat_template(self.template).render({"system": self.system, "user": parts[0].text})
        return ChatRequest((), sampling, prompt=opening + "".join(part.text for part in parts[1:]))


def messages(system: str, parts: Sequence[Part]) -> tuple[Message, ...]:
    """Return the transcript as messages: the model's text so far, and what it was told as the user's next word."""
    said = [part for part in parts if part.text.strip()]  # APIs refuse an empty message
    turns = [
        Message("user" if role == "user" else "assistant", "\n\n".join(part.text.strip() for part in turn))
        for role, turn in groupby(said, lambda part: part.role)
    ]
    return (Message("system", system), *turns) if system else tuple(turns)


def joined(answer: RawAnswer) -> Said:
    """Return an answer as one text: reasoning that a server gives in a field of its own may hold a search."""
    text, reasoning = to_unicode(answer.content), to_unicode(answer.reasoning)
    if reasoning.strip():
        # Stopped within its thoughts, it has not closed them.
        text = f"<think>{reasoning}" + (f"</think>{text}" if text.strip() else "")
    return Said(text, answer.finish_reason, answer.prompt_tokens, answer.completion_tokens, answer.seconds)
