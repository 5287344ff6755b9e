"""The providers of embeddings: where each is, what it is sent, its limits and its tokenizer; and reading its answers.

All of them speak the same protocol: a list of texts to /embeddings, a numbered row for each and a bill back. Texts are
counted and cut as a provider does it; its tokenizer is loaded only when a text may be over the limit.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from r2med.core.errors import MissingExtraError, UserError
from r2med.encoders.encoder import Vectors

PATH = "/embeddings"


@dataclass(frozen=True)
class Tokenizer:
    """A provider's way of counting."""

    count: Callable[[str], int]
    head: Callable[[str, int], str]
    """(text, tokens) -> about so many tokens of its beginning, as text."""


class TokenLimiter:
    """Cuts texts at a limit: by the tokenizer once one was needed, before that by their bytes.

    The tokenizers here make no more tokens than a text has bytes, and their vocabularies are downloads. So short
    texts are never worth loading one: they pass, and their bytes are the bound that batches and budgets go by.
    """

    def __init__(self, load: Callable[[], Tokenizer], overhead: int = 0) -> None:
        """Take what loads the tokenizer; `overhead` are tokens that the provider may add to a text."""
        self._load = load
        self._overhead = overhead
        self._tokenizer: Tokenizer | None = None

    def bound(self, text: str) -> int:
        """Return how many tokens a text has at most."""
        count = self._tokenizer.count(text) if self._tokenizer else len(text.encode())
        return count + self._overhead

    def cut(self, text: str, limit: int) -> str:
        """Return the text, or as much of its beginning as is within the limit."""
        if len(text.encode()) + self._overhead <= limit:
            return text
        if self._tokenizer is None:
            self._tokenizer = self._load()
        if self._tokenizer.count(text) <= limit:
            return text
        keep = limit
        # A beginning may have more tokens than it had as part of the whole: the cut changes what merges.
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
    except Exception as error:  # whatever its download raises: connection, proxy, checksum, disk
        raise UserError(
            f"a text may be over {model}'s limit, and the tokenizer that would tell (cl100k_base) cannot be loaded "
            f"({type(error).__name__}): where there is a network, run TIKTOKEN_CACHE_DIR=DIR python -c "
            "'import tiktoken; tiktoken.get_encoding(\"cl100k_base\")', then set TIKTOKEN_CACHE_DIR to that folder here"
        ) from None

    def ids(text: str) -> list[int]:
        # What looks like a special token in a document is text.
        return encoding.encode(text, disallowed_special=())  # type: ignore[no-any-return]

    def head(text: str, tokens: int) -> str:
        whole: bytes = encoding.decode_bytes(ids(text)[:tokens])
        return whole.decode("utf-8", errors="ignore")  # a character that the cut went through is left out

    return Tokenizer(lambda text: len(ids(text)), head)


def load_voyage(model: str) -> Tokenizer:
    """Return the tokenizer of one of Voyage's models, from the hub or its cache. Raises UserError if it has none."""
    try:
        import tokenizers
    except ImportError:
        raise MissingExtraError(f"cutting texts for {model}", "api") from None
    try:
        tokenizer = tokenizers.Tokenizer.from_pretrained(f"voyageai/{model}")
    except Exception as error:  # whatever the hub's client raises
        raise UserError(
            f"a text may be over {model}'s limit, and the tokenizer that would tell (voyageai/{model} on the hub) "
            f"cannot be loaded ({type(error).__name__}): where there is a network, run HF_HOME=DIR hf download "
            f"voyageai/{model}, then set HF_HOME to that folder here"
        ) from None
    tokenizer.no_truncation()  # its file has a limit of its own, by which nothing would ever be over another

    def head(text: str, tokens: int) -> str:
        offsets = tokenizer.encode(text, add_special_tokens=False).offsets[:tokens]
        return text[: max((end for _, end in offsets), default=0)]

    return Tokenizer(lambda text: len(tokenizer.encode(text)), head)


@dataclass(frozen=True)
class EmbeddingProvider:
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
    "openai": EmbeddingProvider(
        "openai",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        urls=(("", "https://api.openai.com/v1"),),
        texts_per_request=256,
        tokens_per_request=100_000,
        load_tokenizer=load_tiktoken,
    ),
    "voyage": EmbeddingProvider(
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
class EmbeddingAnswer:
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


MAX_BILLED = 1 << 40
"""Tokens of a bill that are believed. JSON allows numbers of hundreds of digits, which no price can be computed for."""


def billed_tokens(body: Any, expected: int) -> int:
    """Return the tokens of the bill; what we expected, if the answer has none."""
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if type(tokens) is int and 0 <= tokens < MAX_BILLED else expected


def read_answer(body: Any, texts: int, provider: str) -> EmbeddingAnswer:
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
    return EmbeddingAnswer(rows, tuple(i for i, row in enumerate(rows) if not len(row) or not np.isfinite(row).all()))


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
