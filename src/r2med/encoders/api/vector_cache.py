"""Every vector that was paid for, kept by content in SQLite; several processes may read and write it at once.

A row is found by the hash of all it depends on, and holds the number of tokens and the vector. The texts are not kept.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.store.rows import Rows

_TOKENS = struct.Struct("<q")


class PaidVector(NamedTuple):
    """A vector, and the tokens it was billed as."""

    vector: Vectors
    tokens: int


class VectorCache:
    """An open cache file; use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "cache of API answers", "embeddings")

    def __enter__(self) -> VectorCache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, PaidVector]:
        """Return the vectors of the keys that are there and sound."""
        return {key: _decoded(value) for key, value in self._rows.get(keys).items() if _is_whole(value)}

    def put(self, vectors: Mapping[bytes, PaidVector]) -> None:
        """Keep the vectors of one request, all or none; they are on the disk when this returns."""
        self._rows.put({key: _encoded(paid) for key, paid in vectors.items()})


def _encoded(paid: PaidVector) -> bytes:
    return _TOKENS.pack(paid.tokens) + paid.vector.astype("<f4").tobytes()


def _is_whole(value: bytes) -> bool:
    return len(value) > _TOKENS.size and (len(value) - _TOKENS.size) % 4 == 0


def _decoded(value: bytes) -> PaidVector:
    (tokens,) = _TOKENS.unpack_from(value)
    return PaidVector(np.frombuffer(value, dtype="<f4", offset=_TOKENS.size).astype(np.float32), tokens)
