"""Every score that was computed, kept by content in SQLite; several processes may read and write it at once.

A row is found by the hash of all it depends on, and holds the score and what it took. The texts are not kept.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from r2med.crossencoders.contracts import Scored
from r2med.store.rows import Rows

_FORM = struct.Struct("<dq?d")


def pair_key(model: str, query: bytes, document: bytes) -> bytes:
    """Return the key of a pair's score: by the digest of the model's description and the hashes of the two texts."""
    return hashlib.sha256(model.encode() + query + document).digest()


def text_hash(text: str) -> bytes:
    """Return the hash of a text; lone surrogates, which have no UTF-8, count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class ScoreCache:
    """An open cache file; use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self._rows = Rows(path, "cache of scores", "scores")

    def __enter__(self) -> ScoreCache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Scored]:
        """Return the scores of the keys that are there and sound."""
        scores = {key: _decoded(value) for key, value in self._rows.get(keys).items()}
        return {key: scored for key, scored in scores.items() if scored is not None}

    def put(self, scores: Mapping[bytes, Scored]) -> None:
        """Keep some scores, all or none; they are on the disk when this returns."""
        self._rows.put({key: _FORM.pack(*scored) for key, scored in scores.items()})


def _decoded(value: bytes) -> Scored | None:
    scored = Scored(*_FORM.unpack(value)) if len(value) == _FORM.size else None
    return scored if scored is not None and math.isfinite(scored.score) else None
