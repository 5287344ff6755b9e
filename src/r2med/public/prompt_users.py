"""Which stage uses a prompt template."""

from __future__ import annotations

from r2med.systems.expand.method_cards import METHODS
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS


def used_by(name: str) -> tuple[str, str, bool]:
    """Return a template, a stage that uses it, and True if that stage needs an LLM. Cards may share one template."""
    cards = [(each.template, each.name, each.llm is None) for each in LLM_RERANKERS.values()]
    cards += [(each.prompt, each.name, each.llm is None) for each in METHODS.values()]
    found = [card for card in cards if name == card[1]] or [card for card in cards if name == card[0]]
    return found[0] if found else (name, name, True)
