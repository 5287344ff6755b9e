"""What may be set of an agent, and how its LLM is sampled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from r2med.agents import search_r1
from r2med.agents.chat_templates import chat_template
from r2med.errors import UserError, nearest
from r2med.llm.contracts import ChatModel, Sampling
from r2med.llm.llm_cards import LLMCard
from r2med.llm.open import sampling_of

VIA = ("chat", "completion")


@dataclass(frozen=True)
class Settings:
    """One agent's settings."""

    turns: int
    """Turns of the model's, at most; Search-R1 has one more, with the search off."""
    topk: int
    """Documents of a search."""
    searches: int | None = None
    """Searches at most; None: as many as there are turns."""
    via: str = "chat"
    """How the transcript is sent: as messages, or as one raw text that the model goes on with."""
    template: str = ""
    """The chat template of a raw text; empty: the card's."""
    prompts: Path | None = None
    """A folder of the user's own templates."""

    def __post_init__(self) -> None:
        for name in ("turns", "topk", "searches"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise UserError(f"{name} must be 1 or more, not {value}")
        if self.via not in VIA:
            raise UserError(f"via={self.via!r}{nearest(self.via, VIA)}: {' or '.join(VIA)}")
        if self.template:
            chat_template(self.template)
            if self.via != "completion":
                raise UserError(f"template={self.template} is for via=completion: servers of chats have their own")

    def changed(self, plain: Settings) -> tuple[tuple[str, str], ...]:
        """Return those that differ from the defaults, as one types them."""
        names = ("turns", "searches", "topk", "via", "template")
        given = [(name, getattr(self, name)) for name in names]
        return tuple((name, str(value)) for name, value in given if value != getattr(plain, name))


DEFAULTS: Mapping[str, Settings] = {
    "search-r1": Settings(turns=4, topk=3),
    "search-o1": Settings(turns=15, topk=10, searches=10),
}

_DRAWN: Mapping[str, Mapping[str, Any]] = {
    "search-r1": {"temperature": 0.7},
    "search-o1": {"temperature": 0.7, "top_p": 0.8, "top_k": 20},
}

_TOKENS = {"search-r1": search_r1.TOKENS}


def sampling(method: str, card: LLMCard, llm: ChatModel) -> Sampling:
    """Return how an agent's tokens are drawn: as its authors do, where the LLM's API takes that."""
    # Half of the context at most: a turn that may fill it leaves no room for a second one.
    limit = min(card.max_tokens, card.context_length // 2)
    found = replace(sampling_of(card), max_tokens=min(_TOKENS.get(method, limit), limit))
    if card.api_style == "reasoning":
        return found
    found = replace(found, **_DRAWN[method])
    if card.agent_repetition_penalty is not None:
        found = replace(found, repetition_penalty=card.agent_repetition_penalty)
    # OpenAI itself, the one endpoint without an address, refuses what is not in its protocol.
    return replace(found, top_k=card.top_k) if llm.describe().get("endpoint") == "" else found
