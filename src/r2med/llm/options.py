"""How LLMs are asked: where, how many at once, how patiently, for how much. One value, from flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from r2med.errors import UserError


@dataclass(frozen=True)
class ChatOptions:
    """What a user may set about asking an LLM; none of it belongs to its card."""

    base_url: str = ""
    """An OpenAI-compatible endpoint; empty: the card's, else OPENAI_BASE_URL, else OpenAI's own."""
    concurrency: int = 16
    deadline: float = 900.0
    """Seconds that the attempts and waits of one request may take together."""
    idle: float = 180.0
    """Seconds without a byte after which a request counts as stalled; some APIs are silent while they reason."""
    budget_usd: float | None = None
    """Dollars that calls may cost; what is left when they are spent is not asked."""
    backend: str = ""
    """openai, vllm or local; empty: the card's."""
    model_path: Path | None = None
    """Weights given by hand, for the backends that run in this process."""

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise UserError(f"the number of requests at once is 1 or more, not {self.concurrency}")
        for what, seconds in (("deadline", self.deadline), ("idle timeout", self.idle)):
            if not seconds > 0:
                raise UserError(f"the {what} of a request is a number of seconds above 0, not {seconds:g}")
