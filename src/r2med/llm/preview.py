"""What a stage would ask of an LLM, for dry runs and estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.llm.chat import ChatModel, ChatRequest
from r2med.llm.costs import Estimate, estimate, is_priced
from r2med.llm.llm_cards import LLMCard


@dataclass(frozen=True)
class Preview:
    """The questions about one dataset that are known before any is asked; previews of several datasets add up."""

    card: LLMCard
    requests: tuple[ChatRequest, ...]
    unanswered: tuple[ChatRequest, ...]
    """Those that would be asked: nobody has answered them yet."""
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
        keep_cut: bool = False,
        cut: int = 0,
        unfit: int = 0,
        note: str = "",
    ) -> Preview:
        """Return the preview of requests, each of which is asked once; `keep_cut` as `complete` will have it."""
        distinct = tuple(dict.fromkeys(requests))
        return cls(card, distinct, tuple(llm.unanswered(distinct, keep_cut=keep_cut)), cut, unfit, note)

    def __add__(self, other: Preview) -> Preview:
        return Preview(
            self.card,
            tuple(dict.fromkeys(self.requests + other.requests)),
            tuple(dict.fromkeys(self.unanswered + other.unanswered)),
            self.cut + other.cut,
            self.unfit + other.unfit,
            self.note or other.note,
        )

    @property
    def estimate(self) -> Estimate:
        """What asking would take, about."""
        return estimate(self.unanswered, self.card)

    @property
    def is_priced(self) -> bool:
        """Whether the dollars of the estimate are known."""
        return is_priced(self.card)
