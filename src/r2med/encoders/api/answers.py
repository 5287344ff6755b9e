"""Reading a provider's answer: one finite row of the right dimension per text, in the texts' order, or one line."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass
from typing import Any

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.errors import UserError


@dataclass(frozen=True)
class Answer:
    """What came back for one request."""

    rows: list[Vectors]
    bad: tuple[int, ...]
    """The rows that are not finite numbers."""


def billed_tokens(body: Any, expected: int) -> int:
    """Return the tokens of the bill; what we expected, if the answer has none."""
    usage = body.get("usage") if isinstance(body, dict) else None
    tokens = usage.get("total_tokens") if isinstance(usage, dict) else None
    return tokens if isinstance(tokens, int) and tokens >= 0 else expected


def read_answer(body: Any, texts: int, provider: str) -> Answer:
    """Return the rows by their index."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise UserError(f"{provider}: the answer has no list of embeddings in it: is the base URL right?")
    if len(data) != texts:
        raise UserError(f"{provider}: {len(data)} embeddings came back for {texts} texts")
    # Some compatible servers give no index; then order is all there is.
    indices = [item.get("index", place) for place, item in enumerate(data)]
    if not all(type(index) is int for index in indices) or sorted(indices) != list(range(texts)):
        raise UserError(f"{provider}: the embeddings that came back are not numbered 0 to {texts - 1}")
    embeddings = [
        item.get("embedding") for _, item in sorted(zip(indices, data, strict=True), key=lambda pair: pair[0])
    ]
    rows = [_row(embedding) for embedding in embeddings]
    return Answer(rows, tuple(i for i, row in enumerate(rows) if not len(row) or not np.isfinite(row).all()))


def check_dimension(rows: list[Vectors], expected: int, provider: str, model: str) -> int:
    """Return the one dimension of the rows; `expected` 0 takes any."""
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
            # base64 of little-endian float32: half the bytes of decimals, and exact.
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
