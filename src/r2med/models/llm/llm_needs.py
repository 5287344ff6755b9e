"""What calls of an LLM need: tokens, price, time, and memory at the server, by its card and the length of prompts."""

from __future__ import annotations

from r2med.foundation.core.needs import Needs, gpu_memory
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.costs import dollars, is_priced
from r2med.models.llm.llm_cards import LLMCard, missing_for

WRITTEN = 50
"""Estimated number of tokens that an LLM writes in a second."""
INSTRUCTION_TOKENS = 300
"""Approximate number of tokens of the instructions around a query."""
MOST_TOKENS = 4
"""A text has at most four times the tokens that `approximate_tokens` counts: one for each byte."""
_TYPICAL_ANSWER_TOKENS = {False: 400, True: 2500}
"""Rough number of tokens of an answer, for models without and with reasoning."""


def llm_needs(
    stage: str,
    card: LLMCard,
    setup: Setup,
    calls: int | None,
    read: int,
    most: tuple[int, int] | None = None,
) -> Needs:
    """Return the needs of calls that read this many tokens in all.

    `most` are the largest number of calls and the tokens that they read, if answers decide what is asked next. Without
    a usual number of calls, only these are known.
    """
    most_calls, most_read = most or (calls or 0, read)
    limit = min(card.max_tokens, card.context_length)
    answer = min(typical_answer_tokens(card), limit)
    bound = min(MOST_TOKENS * most_read, most_calls * card.context_length)
    priced, backend = is_priced(card), setup.llm_backend or ("openai" if setup.base_url else card.backend)
    written = None if calls is None else calls * answer
    return Needs(
        stage,
        calls=calls,
        most_calls=most_calls,
        read=None if calls is None else read,
        written=written,
        dollars=dollars(card, read, written) if priced and written is not None else None,
        most_dollars=dollars(card, bound, most_calls * limit) if priced else None,
        seconds=None if written is None else _seconds(written, calls or 0, setup, is_remote=backend == "openai"),
        memory=gpu_memory(card.parameters) if card.backend == "local" and not setup.base_url else 0.0,
        served=gpu_memory(card.parameters) if card.backend == "openai" and not priced else 0.0,
        missing=missing_for(card, setup),
    )


def _seconds(written: int, calls: int, setup: Setup, *, is_remote: bool) -> float:
    """Return the time of calls. A server answers several at once, a model in this process one after the other."""
    return written / WRITTEN / (min(setup.concurrency, max(calls, 1)) if is_remote else 1)


def typical_answer_tokens(card: LLMCard) -> int:
    """Return the rough number of tokens that an LLM writes for one answer."""
    return _TYPICAL_ANSWER_TOKENS[card.api_style == "reasoning" or card.answer in ("think", "final-response")]
