"""The providers of embeddings: where each is, what it is sent, its limits and its tokenizer; and reading its answers.

All of them speak the same protocol: a list of texts to /embeddings, a numbered row for each and a bill back.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2med.encoders.api.token_limits import Tokenizer, load_tiktoken, load_voyage
from r2med.encoders.encoder import Vectors
from r2med.errors import UserError

PATH = "/embeddings"


@dataclass(frozen=True)
class Provider:
    """All that differs between providers."""

    name: str
    key_variable: str
    url_variable: str
    urls: tuple[tuple[str, str], ...]
    """(beginning of a key, base URL for such keys); the first that fits is taken."""
    texts_per_request: int
    tokens_per_request: int
    load_tokenizer: Callable[[str], Tokenizer]
    overhead: int = 0
    """Tokens that a provider may add to a text."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What every request says besides model, texts and input type."""

    def url(self, key: str) -> str:
        """Return the provider's own base URL for a key."""
        return next(url for beginning, url in self.urls if key.startswith(beginning))

    def body(self, model: str, input_type: str, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        kind = {"input_type": input_type} if input_type else {}
        # base64 of little-endian float32: half the bytes of decimals, and exact.
        return {"model": model, "input": list(texts), "encoding_format": "base64", **kind, **self.settings}


# Requests are kept well below what is allowed (OpenAI: 2,048 texts and 300,000 tokens; Voyage: 1,000 and 120,000):
# eight at a time saturate either, and what a kill, a retry or a 429 costs is one request.
PROVIDERS = {
    "openai": Provider(
        "openai",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        urls=(("", "https://api.openai.com/v1"),),
        texts_per_request=256,
        tokens_per_request=100_000,
        load_tokenizer=load_tiktoken,
    ),
    "voyage": Provider(
        "voyage",
        "VOYAGE_API_KEY",
        "VOYAGE_BASE_URL",
        urls=(("al-", "https://ai.mongodb.com/v1"), ("", "https://api.voyageai.com/v1")),
        texts_per_request=128,
        tokens_per_request=60_000,
        load_tokenizer=load_voyage,
        overhead=16,  # it puts a sentence before a text that has an input type
        settings={"truncation": False},  # by default it shortens without a word
    ),
}


@dataclass(frozen=True)
class Answer:
    """What came back for one request."""

    rows: list[Vectors]
    bad: tuple[int, ...]
    """The rows that are not finite numbers."""


def read_json(body: bytes, server: str) -> Any:
    """Return what an answer's body says. Raises UserError if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    raise UserError(f"{server}: the answer is not JSON: is the base URL right?")


def billed_tokens(body: Any, expected: int) -> int:
    """Return the tokens of the bill; what we expected, if the answer has none."""
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens >= 0 else expected


def read_answer(body: Any, texts: int, provider: str) -> Answer:
    """Return the rows by their index. Raises UserError if there is not one row for each text."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UserError(f"{provider}: the answer has no list of embeddings in it: is the base URL right?")
    if len(data) != texts:
        raise UserError(f"{provider}: {len(data)} embeddings came back for {texts} texts")
    # Some compatible servers give no index; then order is all there is.
    indices = [item.get("index", position) for position, item in enumerate(data)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(texts)):
        raise UserError(f"{provider}: the embeddings that came back are not numbered 0 to {texts - 1}")
    by_index = dict(zip(indices, data, strict=True))
    rows = [_row(by_index[index].get("embedding")) for index in range(texts)]
    return Answer(rows, tuple(i for i, row in enumerate(rows) if not len(row) or not np.isfinite(row).all()))


def check_dimension(rows: Sequence[Vectors], expected: int, provider: str, model: str) -> int:
    """Return the one dimension of the rows; `expected` 0 takes any. Raises UserError for a row of another one."""
    for row in rows:
        if expected and len(row) != expected:
            raise UserError(f"{provider}: {model} is to give {expected} dimensions, but a row of {len(row)} came back")
        expected = len(row)
    return expected


def _row(embedding: Any) -> Vectors:
    """Return one row; what is not a list of numbers becomes an empty one."""
    nothing: Vectors = np.empty(0, dtype=np.float32)
    if isinstance(embedding, str):
        try:
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
        except (binascii.Error, ValueError):
            return nothing
    try:
        numbers = np.asarray(embedding)
    except ValueError:  # lists of different lengths
        return nothing
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":  # null makes it an array of objects
        return nothing
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)
