"""What an encoder used: counted as it happens, so that a run that stops half-way still tells what it paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass


@dataclass
class Usage:
    """Counts of one encoder in this process."""

    texts: int = 0
    """Texts that got a vector."""
    tokens: int = 0
    """Tokens that were billed."""
    cost_usd: float = 0.0
    cached: int = 0
    """Texts answered from the cache."""
    cached_tokens: int = 0
    """The tokens these were billed for when they were fetched."""
    truncated: int = 0
    retries: int = 0

    def count(self, texts: int, truncated: int, cached: Sequence[int]) -> None:
        """Add a finished call: its texts, how many were cut, and the tokens of those that were in the cache."""
        self.texts += texts
        self.truncated += truncated
        self.cached += len(cached)
        self.cached_tokens += sum(cached)

    def pay(self, tokens: int, cost: float) -> None:
        """Add one answered request."""
        self.tokens += tokens
        self.cost_usd += cost

    def retry(self) -> None:
        """Add a request sent again."""
        self.retries += 1

    def as_dict(self) -> dict[str, float]:
        """Return the counts by name."""
        return asdict(self)
