"""Embedding APIs: a card with the names of their fields, their addresses and limits, and the parsing of their answers.

All APIs have the same protocol. A list of texts is sent, and a vector for each text and a bill come back. Each API
names the fields differently. Requests stay well below the limits of an API: eight parallel requests use the full rate,
and a kill, a retry or a 429 costs only one request.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field, field_validator

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.keys import changed_values
from r2med.foundation.core.names import Catalogue
from r2med.foundation.net.endpoint import Endpoint, endpoint_at
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders.api_account import ApiAccount
from r2med.models.encoders.api_tokenizers import TOKENIZERS, Tokenizer, load_tokenizer

Row = npt.NDArray[np.float32]
"""The vector of a text."""


class EmbeddingApi(ApiAccount):
    """The settings that differ between embedding APIs. Names with dots are paths: `usage.total_tokens`."""

    path: str = "/embeddings"
    """Path after the base URL."""
    model: str = "model"
    """Name of the field with the model. Empty: a server of one model needs no name."""
    texts: str = "input"
    """Name of the field with the list of texts."""
    input_type: str = "input_type"
    """Name of the field with the kind of text. It is sent if the model's card states `input_type` for a role."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request that can change vectors. They are part of the key of the vectors."""
    transport: dict[str, Any] = Field(default_factory=dict)
    """Further fields of every request that change no vector, such as `encoding_format = "base64"`: base64 of
    little-endian float32 is exact and half as long as decimal numbers.
    """
    rows: str = "data"
    """Name of the field with the list of vectors. Empty: the answer is the list."""
    vector: str = "embedding"
    """Name of the field with a vector in an item of the list. Empty: the item is the vector."""
    index: str = "index"
    """Name of the field with the number of an item's text. Items without it are in the order of the texts."""
    tokens: str = "usage.total_tokens"
    """Name of the field with the number of billed tokens. Without it the largest possible number is assumed."""
    texts_per_request: int = Field(96, ge=1)
    """Maximum number of texts that are sent together."""
    tokens_per_request: int = Field(50_000, ge=1)
    """Maximum number of tokens that are sent together."""
    tokenizer: str = ""
    """What counts tokens, so that long texts can be cut here: tiktoken:ENCODING, or hub:REPOSITORY, which may contain
    {model}. Empty: texts are sent as they are, and the server must cut them.
    """
    added_tokens: int = Field(0, ge=0)
    """Number of tokens that the API may add to a text."""

    @field_validator("tokenizer")
    @classmethod
    def _tokenizer_can_be_loaded(cls, tokenizer: str) -> str:
        kind, _, name = tokenizer.partition(":")
        if tokenizer and (kind not in TOKENIZERS or not name):
            raise ValueError(f"{tokenizer!r} is no tokenizer: write tiktoken:ENCODING or hub:REPOSITORY")
        return tokenizer

    def key(self) -> dict[str, Any]:
        """Return what vectors depend on, besides the model and the texts: the request and the field that is read."""
        unimportant = ("name", "account", "urls", "transport", "tokens", "tokenizer", "added_tokens")
        return changed_values(self, but=(*unimportant, "texts_per_request", "tokens_per_request"))

    def load_tokenizer(self, model: str) -> Tokenizer:
        """Return the tokenizer of a model. Raises UserError if it cannot be loaded."""
        return load_tokenizer(self.tokenizer.replace("{model}", model), model)

    def endpoint(self, setup: Setup) -> Endpoint:
        """Return the endpoint: the address of the setup or of the environment, or else the provider's own.

        Raises UserError if a server of the user's own has no address.
        """
        url = dict(setup.endpoints).get(self.name) or os.environ.get(self.url_variable, "").strip()
        if not url and not self.urls:
            raise UserError(f"the address of {self.name} is not known: set {self.url_variable}")
        return endpoint_at(url, self.name, self.key_variable)

    def missing(self, setup: Setup) -> str:
        """Return what prevents a request, on one line: no address, or a key that is not set; empty if nothing does."""
        try:
            return self.endpoint(setup).missing(needs_key=bool(self.urls))
        except UserError as error:
            return str(error)

    def body(self, model: str, input_type: str, texts: Sequence[str]) -> dict[str, Any]:
        """Return the body of a request."""
        named = {self.model: model} if self.model else {}
        kind = {self.input_type: input_type} if input_type else {}
        return {**named, self.texts: list(texts), **kind, **self.settings, **self.transport}

    def read(self, body: Any, texts: int) -> EmbeddingAnswer:
        """Return the vectors of an answer. Raises UserError if there is not one for each text."""
        data = value_at(body, self.rows)
        if not isinstance(data, list) or (self.vector and not all(isinstance(item, dict) for item in data)):
            raise UserError(f"{self.name}: the answer has no list of embeddings; check the base URL")
        if len(data) != texts:
            raise UserError(f"{self.name}: {len(data)} embeddings were returned for {texts} texts")
        # Some compatible servers send no index. Then only the order is known.
        indices = [item.get(self.index, place) if self.vector else place for place, item in enumerate(data)]
        if not all(type(index) is int for index in indices) or sorted(indices) != list(range(texts)):
            raise UserError(f"{self.name}: the returned embeddings are not numbered 0 to {texts - 1}")
        by_index = dict(zip(indices, data, strict=True))
        rows = [_row(value_at(by_index[index], self.vector)) for index in range(texts)]
        bad = tuple(index for index, row in enumerate(rows) if not len(row) or not np.isfinite(row).all())
        return EmbeddingAnswer(rows, bad)


EMBEDDING_APIS: Catalogue[EmbeddingApi] = Catalogue("embedding-apis", EmbeddingApi, "embedding API")
"""Every embedding API that has a card, by name."""


@dataclass(frozen=True)
class EmbeddingAnswer:
    """The answer to one request."""

    rows: list[Row]
    bad: tuple[int, ...]
    """Positions of rows that are not finite numbers."""


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path of names with dots; None if it is not there."""
    for name in filter(None, path.split(".")):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def read_json(body: bytes, server: str) -> Any:
    """Return the parsed body of an answer. Raises UserError if it is not JSON."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        pass
    raise UserError(f"{server}: the answer is not JSON; check the base URL")


MAX_BILLED_TOKENS = 1 << 40
"""Maximum number of billed tokens that is accepted. JSON allows numbers of hundreds of digits, which have no price."""


def billed_tokens(body: Any, expected: int, field: str = "usage.total_tokens") -> int:
    """Return the billed number of tokens, or the expected number if the answer has no bill."""
    tokens = value_at(body, field)
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
