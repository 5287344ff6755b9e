"""Encoders behind the embedding server on loopback, opened as the tests of API models need them."""

from pathlib import Path
from typing import Any

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.net.request_loop import Policy
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.api_encoder import ApiEncoder
from r2med.models.encoders.api_tokenizers import TokenLimiter
from r2med.models.encoders.model_cards import ModelCard, Side
from support import embedding_server as api
from support.embedding_server import Server, vector

WORDS = Instruction(kind="question", what="passages", domain="Medical")
FAST = Policy(first_wait=0.001, idle=60, deadline=240)
HASTY = Policy(first_wait=0.001, idle=0.4, deadline=240, attempts=99)
"""For tests that wait until silence is noticed; a busy machine may look silent now and then, hence the attempts."""
TEXTS = ["asthma", "gout of the toe", "measles"]


class Words:
    """A tokenizer small enough to see through: one token a word."""

    def count(self, text: str) -> int:
        return len(text.split())

    def head(self, text: str, tokens: int) -> str:
        return " ".join(text.split()[:tokens])


def card(provider: str = "openai", **changes: Any) -> ModelCard:
    settings: dict[str, Any] = {
        "name": provider,
        "repository": f"{provider}-model",
        "loader": provider,
        "dimension": api.DIMENSION,
        "price_per_million_tokens": 1_000_000.0,
        "query": Side(prefix="about {kind}: ", max_tokens=500, input_type="query" if provider == "voyage" else ""),
        "document": Side(max_tokens=500, input_type="document" if provider == "voyage" else ""),
    }
    return ModelCard(**(settings | changes))


def opened(
    server: Server,
    home: Path,
    provider: str = "openai",
    policy: Policy = FAST,
    budget: float | None = None,
    **changes: Any,
) -> ApiEncoder:
    setup = Runtime(endpoints=((provider, server.address),), budget=budget)
    return patient(ApiEncoder(card(provider, **changes), WORDS, setup, Store(home)), policy)


def patient(encoder: ApiEncoder, policy: Policy = FAST) -> ApiEncoder:
    """Return the encoder with another patience, and with a tokenizer that need not be downloaded."""
    encoder._policy = policy
    encoder._limiter = TokenLimiter(Words, encoder._api.added_tokens)
    return encoder


def expected(texts: list[str]) -> Any:
    return np.stack([vector(text) for text in texts])
