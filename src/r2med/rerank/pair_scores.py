"""The scores of all candidates, through the cache: what is there is read back, the rest is scored and kept as it comes.

A score's key holds the model's description and the two texts, so that it serves every run, depth and dataset in which
the pair occurs. Work is kept chunk by chunk: a run that dies goes on where it was. The texts are not kept.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.crossencoders.pair_scorer import PairScorer, ScoredPair
from r2med.data.corpus import Corpus
from r2med.encoders.encoder import NotFiniteError
from r2med.engine.reporting import Reporter
from r2med.errors import UserError
from r2med.rerank.reranking import Rows
from r2med.store import Store, digest
from r2med.store.files import exclusive
from r2med.store.rows import Rows as Table

CHUNK = 512
"""Pairs a chunk: enough for batches of even lengths, few enough to lose little."""

TEXTS = 4096
"""Documents read at a time for their hashes."""


@dataclass(frozen=True)
class RankedQuery:
    """A query with the documents that are scored for it."""

    id: str
    text: str
    rows: Rows


def pair_scores(
    queries: Sequence[RankedQuery], scorer: PairScorer, corpus: Corpus, store: Store, name: str
) -> list[list[ScoredPair]]:
    """Return the scores of each query's candidates, in their order; `name` is what the cache's file is called."""
    keys = _keys(queries, scorer, corpus)
    pairs = {
        key: (query, int(row))
        for query, line in zip(queries, keys, strict=True)
        for key, row in zip(line, query.rows, strict=True)
    }
    if not pairs:
        return [[] for _ in queries]
    folder = store.root / "scores"
    with ScoreCache(folder / f"{name}.sqlite") as cache:
        scores = _usable(cache.get(list(pairs)), store)
        missing = [key for key in pairs if key not in scores]
        reporter = Reporter("pairs", len(pairs), before=len(scores))
        # Whoever scores the same pairs waits, and finds them done; other datasets or depths are scored meanwhile.
        lock = folder / f"{digest(sorted(key.hex() for key in pairs))}.lock"
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            with exclusive(lock):
                scores |= _usable(cache.get(chunk), store)
                new = _scored({key: pairs[key] for key in chunk if key not in scores}, scorer, corpus)
                cache.put(new)
            store.note_made(key.hex() for key in new)
            scores |= new
            reporter.advance(len(chunk))
    return [[scores[key] for key in line] for line in keys]


def _keys(queries: Sequence[RankedQuery], scorer: PairScorer, corpus: Corpus) -> list[list[bytes]]:
    model = digest(scorer.describe())
    rows = sorted({int(row) for query in queries for row in query.rows})
    hashes: dict[int, bytes] = {}
    for start in range(0, len(rows), TEXTS):
        part = rows[start : start + TEXTS]
        hashes.update(zip(part, map(text_hash, corpus.texts(part)), strict=True))
    hashed = [(query, text_hash(query.text)) for query in queries]
    return [[pair_key(model, text, hashes[int(row)]) for row in query.rows] for query, text in hashed]


def _usable(scores: Mapping[bytes, ScoredPair], store: Store) -> dict[bytes, ScoredPair]:
    """Leave out what a run that starts over did not score itself."""
    return {key: scored for key, scored in scores.items() if store.usable(key.hex())}


def _scored(
    pairs: Mapping[bytes, tuple[RankedQuery, int]], scorer: PairScorer, corpus: Corpus
) -> dict[bytes, ScoredPair]:
    texts = corpus.texts([row for _, row in pairs.values()])
    inputs = [(query.text, text) for (query, _), text in zip(pairs.values(), texts, strict=True)]
    try:
        return dict(zip(pairs, scorer.score(inputs), strict=True))
    except NotFiniteError as error:
        query, row = list(pairs.values())[error.index]
        raise UserError(
            f"the score of query {query.id} and document {corpus.id(row)} is NaN or infinite ({error.hint})"
        ) from None


_FORM = struct.Struct("<dq?d")


def pair_key(model: str, query: bytes, document: bytes) -> bytes:
    """Return the key of a pair's score: by the digest of the model's description and the hashes of the two texts."""
    return hashlib.sha256(model.encode() + query + document).digest()


def text_hash(text: str) -> bytes:
    """Return the hash of a text; lone surrogates, which have no UTF-8, count as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


class ScoreCache:
    """An open file of scores by key; use it in a `with`."""

    def __init__(self, path: Path) -> None:
        self._rows = Table(path, "cache of scores", "scores")

    def __enter__(self) -> ScoreCache:
        return self

    def __exit__(self, *error: Any) -> None:
        self._rows.__exit__(*error)

    def get(self, keys: Sequence[bytes]) -> dict[bytes, ScoredPair]:
        """Return the scores of the keys that are there and sound."""
        scores = {key: _decoded(value) for key, value in self._rows.get(keys).items()}
        return {key: scored for key, scored in scores.items() if scored is not None}

    def put(self, scores: Mapping[bytes, ScoredPair]) -> None:
        """Keep some scores, all or none; they are on the disk when this returns."""
        self._rows.put({key: _FORM.pack(*scored) for key, scored in scores.items()})


def _decoded(value: bytes) -> ScoredPair | None:
    scored = ScoredPair(*_FORM.unpack(value)) if len(value) == _FORM.size else None
    return scored if scored is not None and math.isfinite(scored.score) else None
