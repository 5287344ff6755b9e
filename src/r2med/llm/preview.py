"""What a stage would ask of an LLM, for dry runs and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.llm.contracts import ChatModel, ChatRequest
from r2med.llm.llm_cards import LLMCard
from r2med.llm.model import JournaledChat


@dataclass(frozen=True)
class Preview:
    """The questions about one dataset that are known before any is asked."""

    card: LLMCard
    requests: tuple[ChatRequest, ...]
    unanswered: tuple[ChatRequest, ...]
    """Those that the journal has no answer to."""
    cut: int = 0
    """Prompts that something would be left out of."""
    unfit: int = 0
    """Prompts that would not fit at all, and not be asked."""
    note: str = ""
    """What the number of requests does not tell, such as the turns of a conversation that begins with each."""

    @classmethod
    def of(
        cls,
        llm: ChatModel,
        card: LLMCard,
        requests: Sequence[ChatRequest],
        *,
        cut: int = 0,
        unfit: int = 0,
        note: str = "",
    ) -> Preview:
        """Return the preview of requests, each of which is asked once, with those the journal cannot answer."""
        distinct = tuple(dict.fromkeys(requests))
        unanswered = tuple(llm.unanswered(distinct)) if isinstance(llm, JournaledChat) else distinct
        return cls(card, distinct, unanswered, cut, unfit, note)
