"""What work took: seconds, calls, tokens, texts, dollars. The same whether the work was done now or read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Cost:
    """The price of one piece of work; prices add up."""

    seconds: float = 0.0
    """The work's own time, one piece after the other, as if nothing had been kept."""
    encoder_seconds: float = 0.0
    """The part of it that embedding models and cross-encoders took."""
    calls: int = 0
    """Calls of LLMs."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    texts: int = 0
    """Texts, or pairs of texts, that encoders read."""
    tokens: int = 0
    """Their tokens."""
    cut: int = 0
    """Texts and prompts that were cut to fit a model."""
    dollars: float = 0.0
    """Where a price is known; see `unpriced`."""
    unpriced: int = 0
    """Calls whose price is not known: with any of them, `dollars` is not the whole bill."""
    latencies: tuple[float, ...] = ()
    """Seconds of each call of an LLM. A record keeps two of their quantiles only."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(*(getattr(self, name) + getattr(other, name) for name in _NAMES))

    def __radd__(self, other: int) -> Cost:
        return self  # so that sum() works, which begins with 0

    @property
    def llm_tokens(self) -> int:
        """Tokens that LLMs read and wrote."""
        return self.prompt_tokens + self.completion_tokens

    def latency(self, share: float) -> float:
        """Return the seconds that this share of all calls did not exceed; 0 if nothing was called."""
        ordered = sorted(self.latencies)
        return ordered[max(0, -int(-share * len(ordered) // 1) - 1)] if ordered else 0.0

    def as_dict(self) -> dict[str, Any]:
        """Return what is not 0, fit for JSON."""
        values = {name: getattr(self, name) for name in _NAMES}
        return {name: list(value) if name == "latencies" else value for name, value in values.items() if value}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Cost:
        """Return what `as_dict` wrote."""
        return cls(**{**values, "latencies": tuple(values.get("latencies", ()))})


NOTHING = Cost()

_NAMES = tuple(field.name for field in fields(Cost))


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    return sum(costs, Cost())
