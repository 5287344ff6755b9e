"""What asking costs: of a bill, at most, and about, before anything is asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from r2med.llm.contracts import ChatRequest
from r2med.llm.llm_cards import LLMCard
from r2med.llm.tokens import request_tokens, request_tokens_at_most

_TYPICAL = {False: 400, True: 2500}
"""Tokens of an answer by whether the model reasons first: the order of magnitude, for want of anything better."""


@dataclass(frozen=True)
class Estimate:
    """What a run would take, about."""

    calls: int
    prompt_tokens: int
    completion_tokens: int
    """A usual answer's, times the calls."""
    cost_usd: float
    cost_at_most_usd: float
    """When every answer uses up its token limit."""


def cost_usd(card: LLMCard, prompt: int, completion: int) -> float:
    """Return the dollars of so many tokens."""
    return (prompt * card.price.prompt + completion * card.price.completion) / 1e6


def cost_at_most(card: LLMCard, request: ChatRequest) -> float:
    """Return the dollars that one request cannot exceed."""
    return cost_usd(card, request_tokens_at_most(request), _limit(card, request))


def estimate(requests: Sequence[ChatRequest], card: LLMCard) -> Estimate:
    """Return what these requests would take; identical ones are asked once."""
    distinct = list(dict.fromkeys(requests))
    prompt = sum(request_tokens(request) for request in distinct)
    usual = _TYPICAL[card.api_style == "reasoning" or card.answer in ("think", "final-response")]
    completion = sum(min(usual, _limit(card, request)) for request in distinct)
    most = sum(_limit(card, request) for request in distinct)
    return Estimate(len(distinct), prompt, completion, cost_usd(card, prompt, completion), cost_usd(card, prompt, most))


def _limit(card: LLMCard, request: ChatRequest) -> int:
    return min(request.sampling.max_tokens or card.max_tokens, card.context_length)
