"""The cost of work: seconds, calls, tokens, texts, dollars. It is the same for new and for cached work."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Cost:
    """The cost of one piece of work. Costs can be added."""

    seconds: float = 0.0
    """Seconds of the work itself, one piece after another, as if nothing had been cached."""
    encoder_seconds: float = 0.0
    """The part of `seconds` that embedding models and cross-encoders took."""
    calls: int = 0
    """Number of LLM calls."""
    prompt_tokens: int = 0
    """Tokens that LLMs read."""
    completion_tokens: int = 0
    """Tokens that LLMs wrote."""
    texts: int = 0
    """Number of texts, or pairs of texts, that encoders read."""
    tokens: int = 0
    """Number of tokens in these texts."""
    cut: int = 0
    """Number of texts and prompts that were cut to fit a model."""
    dollars: float = 0.0
    """Dollars of the calls whose price is known; see `unpriced`."""
    unpriced: int = 0
    """Number of calls whose price is not known. If there are any, `dollars` is not the whole cost."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in _NAMES))

    def __radd__(self, other: int) -> Cost:
        return self  # so that sum() works, which begins with 0

    def times(self, factor: float) -> Cost:
        """Return the cost of more or less of the same work. Counts are rounded.

        If calls have no known price, at least one of them is left, so that the cost stays unknown.
        """
        scaled = {name: getattr(self, name) * factor for name in _NAMES}
        counts = {name: round(value) if name not in _FRACTIONS else value for name, value in scaled.items()}
        return Cost(**counts | ({"unpriced": max(1, counts["unpriced"])} if self.unpriced and factor else {}))

    @property
    def llm_tokens(self) -> int:
        """Number of tokens that LLMs read and wrote."""
        return self.prompt_tokens + self.completion_tokens

    def as_dict(self) -> dict[str, Any]:
        """Return the values that are not 0, ready for JSON."""
        values = {name: getattr(self, name) for name in _NAMES}
        return {name: value for name, value in values.items() if value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cost:
        """Return the cost that `as_dict` wrote."""
        return cls(**values)


NOTHING = Cost()


def stated_or_measured(cost: Cost, started: float) -> Cost:
    """Return a cost, or the seconds since `started` (of `time.perf_counter`) if nothing was stated.

    A stage of a plugin need not state its cost. Without this it would look free.
    """
    return Cost(seconds=time.perf_counter() - started) if cost == NOTHING else cost


_NAMES = tuple(field.name for field in fields(Cost))
_FRACTIONS = ("seconds", "encoder_seconds", "dollars")


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    return sum(costs, Cost())
