"""Embedding providers: their URLs, requests, limits and tokenizers, and the parsing of their answers.

All providers use the same protocol. A list of texts is sent to /embeddings, and a numbered row for each text and a bill
come back. Texts are counted and cut with the provider's tokenizer. It is loaded only when a text may be over the limit.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import MissingExtraError, UserError
from r2med.foundation.net.endpoint import Endpoint, endpoint_at
from r2med.foundation.runtime.setup import Setup

EMBEDDINGS_PATH = "/embeddings"

Row = npt.NDArray[np.float32]
"""The vector of a text."""
EmbeddingApi = Literal["openai", "voyage"]
"""Names of the embedding APIs. The name is the `loader` of a card."""


@dataclass(frozen=True)
class Tokenizer:
    """A provider's way of counting tokens."""

    count: Callable[[str], int]
    head: Callable[[str, int], str]
    """(text, tokens) -> the beginning of the text with about this number of tokens."""


class TokenLimiter:
    """Cuts texts at a token limit.

    Until the tokenizer is needed, texts are measured by their bytes, because these tokenizers never make more tokens
    than bytes. Their vocabularies are downloads, so short texts do not load one. Batches and budgets then use the
    number of bytes as the upper bound.
    """

    def __init__(self, load: Callable[[], Tokenizer], overhead: int = 0) -> None:
        """Set the function that loads the tokenizer.

        `overhead` is the number of tokens that the provider may add to a text.
        """
        self._load = load
        self._overhead = overhead
        self._tokenizer: Tokenizer | None = None

    def bound(self, text: str) -> int:
        """Return the maximum number of tokens of a text."""
        count = self._tokenizer.count(text) if self._tokenizer else len(text.encode())
        return count + self._overhead

    def cut(self, text: str, limit: int) -> str:
        """Return the text, or the longest beginning of it that is within the limit."""
        if len(text.encode()) + self._overhead <= limit:
            return text
        if self._tokenizer is None:
            self._tokenizer = self._load()
        if self._tokenizer.count(text) <= limit:
            return text
        keep = limit
        # A beginning may have more tokens than it had inside the whole text, because the cut changes which tokens
        # merge.
        while keep > 0 and self._tokenizer.count(short := self._tokenizer.head(text, keep)) > limit:
            keep -= 1
        return short if keep > 0 else ""


def load_tiktoken(model: str) -> Tokenizer:
    """Return the tokenizer of OpenAI's embedding models. Raises UserError if it cannot be downloaded."""
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError(f"cutting texts for {model}", "api") from None
    try:
        encoding: Any = tiktoken.get_encoding("cl100k_base")
    # The download may raise anything: errors of the connection, the proxy, the checksum or the disk.
    except Exception as error:
        raise UserError(
            f"a text may exceed the limit of {model}, and its tokenizer (cl100k_base) cannot be loaded "
            f"({type(error).__name__}); on a machine with network access, run TIKTOKEN_CACHE_DIR=DIR python -c "
            "'import tiktoken; tiktoken.get_encoding(\"cl100k_base\")', then set TIKTOKEN_CACHE_DIR to that folder here"
        ) from None

    def ids(text: str) -> list[int]:
        # Text in a document that looks like a special token is plain text.
        return encoding.encode(text, disallowed_special=())  # type: ignore[no-any-return]

    def head(text: str, tokens: int) -> str:
        whole: bytes = encoding.decode_bytes(ids(text)[:tokens])
        return whole.decode("utf-8", errors="ignore")  # A character that was cut in the middle is left out.

    return Tokenizer(lambda text: len(ids(text)), head)


def load_voyage(model: str) -> Tokenizer:
    """Return the tokenizer of a Voyage model, from the hub or its cache. Raises UserError if it has none."""
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError(f"cutting texts for {model}", "api") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_pretrained(f"voyageai/{model}")
    except Exception as error:  # The hub's client may raise anything.
        raise UserError(
            f"a text may exceed the limit of {model}, and its tokenizer (voyageai/{model} on the hub) "
            f"cannot be loaded ({type(error).__name__}); on a machine with network access, run HF_HOME=DIR hf download "
            f"voyageai/{model}, then set HF_HOME to that folder here"
        ) from None
    tokenizer.no_truncation()  # Its file contains its own limit, so that no text would ever exceed ours.

    def head(text: str, tokens: int) -> str:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets[:tokens]
        return text[: max((end for _, end in offsets), default=0)]

    return Tokenizer(lambda text: len(tokenizer.encode(text)), head)


@dataclass(frozen=True)
class EmbeddingProvider:
    """The settings that differ between providers."""

    name: EmbeddingApi
    key_variable: str
    url_variable: str
    urls: tuple[tuple[str, str], ...]
    """Pairs of (beginning of a key, base URL for such keys). The first match is used."""
    texts_per_request: int
    tokens_per_request: int
    load_tokenizer: Callable[[str], Tokenizer]
    overhead: int = 0
    """Number of tokens that a provider may add to a text."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of every request, besides model, texts and input type."""

    def url(self, key: str) -> str:
        """Return the provider's own base URL for a key."""
        return next(url for beginning, url in self.urls if key.startswith(beginning))

    def body(self, model: str, input_type: str, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        kind = {"input_type": input_type} if input_type else {}
        # base64 of little-endian float32 is exact and half as long as decimal numbers.
        return {"model": model, "input": list(texts), "encoding_format": "base64", **kind, **self.settings}


# Requests are well below the limits (OpenAI: 2,048 texts and 300,000 tokens; Voyage: 1,000 and 120,000). Eight parallel
# requests use the full rate of either, and a kill, a retry or a 429 costs only one request.
_PROVIDERS = (
    EmbeddingProvider(
        "openai",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        urls=(("", "https://api.openai.com/v1"),),
        texts_per_request=256,
        tokens_per_request=100_000,
        load_tokenizer=load_tiktoken,
    ),
    EmbeddingProvider(
        "voyage",
        "VOYAGE_API_KEY",
        "VOYAGE_BASE_URL",
        urls=(("al-", "https://ai.mongodb.com/v1"), ("", "https://api.voyageai.com/v1")),
        texts_per_request=128,
        tokens_per_request=60_000,
        load_tokenizer=load_voyage,
        overhead=16,  # Voyage puts a sentence before a text that has an input type.
        settings={"truncation": False},  # By default, Voyage shortens texts without an error.
    ),
)
PROVIDERS: Mapping[str, EmbeddingProvider] = {each.name: each for each in _PROVIDERS}
"""API -> its settings."""


@dataclass(frozen=True)
class EmbeddingAnswer:
    """The answer to one request."""

    rows: list[Row]
    bad: tuple[int, ...]
    """Positions of rows that are not finite numbers."""


def read_json(body: bytes, server: str) -> Any:
    """Return the parsed body of an answer. Raises UserError if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    raise UserError(f"{server}: the answer is not JSON; check the base URL")


MAX_BILLED_TOKENS = 1 << 40
"""Maximum number of billed tokens that is accepted. JSON allows numbers of hundreds of digits, which have no price."""


def billed_tokens(body: Any, expected: int) -> int:
    """Return the billed number of tokens, or the expected number if the answer has no bill."""
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if type(tokens) is int and 0 <= tokens < MAX_BILLED_TOKENS else expected


def bill_shares(total: int, weights: Sequence[int]) -> list[int]:
    """Return whole shares of a bill by weight. They add up to the bill."""
    whole = max(1, sum(weights))
    before = 0
    shares = []
    for weight in weights:
        shares.append((before + weight) * total // whole - before * total // whole)
        before += weight
    return shares


def read_answer(body: Any, texts: int, provider: str) -> EmbeddingAnswer:
    """Return the rows by their index. Raises UserError if there is not one row for each text."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UserError(f"{provider}: the answer has no list of embeddings; check the base URL")
    if len(data) != texts:
        raise UserError(f"{provider}: {len(data)} embeddings were returned for {texts} texts")
    # Some compatible servers send no index. Then only the order is known.
    indices = [item.get("index", position) for position, item in enumerate(data)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(texts)):
        raise UserError(f"{provider}: the returned embeddings are not numbered 0 to {texts - 1}")
    by_index = dict(zip(indices, data, strict=True))
    rows = [_row(by_index[index].get("embedding")) for index in range(texts)]
    return EmbeddingAnswer(rows, tuple(i for i, row in enumerate(rows) if not len(row) or not np.isfinite(row).all()))


def check_dimension(rows: Sequence[Row], expected: int, provider: str, model: str) -> int:
    """Return the common dimension of the rows. Raises UserError for a row of another dimension.

    If `expected` is 0, any dimension is accepted.
    """
    for row in rows:
        if expected and len(row) != expected:
            raise UserError(f"{provider}: {model} must return {expected} dimensions, but it returned {len(row)}")
        expected = len(row)
    return expected


def _row(embedding: Any) -> Row:
    """Return one row. Anything that is not a list of numbers becomes an empty row."""
    nothing: Row = np.empty(0, dtype=np.float32)
    if isinstance(embedding, str):
        try:
            return np.frombuffer(base64.b64decode(embedding, validate=True), dtype="<f4").astype(np.float32)
        except (binascii.Error, ValueError):
            return nothing
    try:
        numbers = np.asarray(embedding)
    except ValueError:  # The lists have different lengths.
        return nothing
    if numbers.ndim != 1 or numbers.dtype.kind not in "fiu":  # A null value makes it an array of objects.
        return nothing
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32)


def provider_endpoint(provider: EmbeddingProvider, setup: Setup) -> Endpoint:
    """Return the endpoint of a provider: the address of the setup or of the environment, or else its own."""
    url = dict(setup.endpoints).get(provider.name) or os.environ.get(provider.url_variable, "").strip()
    return endpoint_at(url, provider.name, provider.key_variable)
