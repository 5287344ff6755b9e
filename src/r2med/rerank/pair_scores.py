"""The scores of all candidates, through the cache: what is there is read back, the rest is scored and kept as it comes.

A score's key holds the model's description and the two texts, so that it serves every run, depth and dataset in which
the pair occurs. Work is kept chunk by chunk: a run that dies goes on where it was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2med.crossencoders.cache import ScoreCache, pair_key, text_hash
from r2med.crossencoders.contracts import PairScorer, Scored
from r2med.data.corpus import Corpus
from r2med.encoders.encoder import NotFiniteError
from r2med.engine.progress import Reporter
from r2med.errors import UserError
from r2med.rerank.order import Rows
from r2med.store import Store, digest
from r2med.store.files import exclusive

CHUNK = 512
"""Pairs a chunk: enough for batches of even lengths, few enough to lose little."""

TEXTS = 4096
"""Documents read at a time for their hashes."""


@dataclass(frozen=True)
class Asked:
    """A query with its candidates."""

    id: str
    text: str
    rows: Rows


def scores_of(
    asked: Sequence[Asked], scorer: PairScorer, corpus: Corpus, store: Store, name: str
) -> list[list[Scored]]:
    """Return the score of each query's candidates, in their order; `name` is what the cache's file is called."""
    keys = _keys(asked, scorer, corpus)
    pairs = {key: (query, int(row)) for query, line in zip(asked, keys, strict=True) for key, row in _both(line, query)}
    if not pairs:
        return [[] for _ in asked]
    folder = store.root / "scores"
    with ScoreCache(folder / f"{name}.sqlite") as cache:
        found = _usable(cache.get(list(pairs)), store)
        missing = [key for key in pairs if key not in found]
        reporter = Reporter("pairs", len(pairs), before=len(found))
        # Whoever scores the same pairs waits, and finds them done; other datasets or depths are scored meanwhile.
        lock = folder / f"{digest(sorted(key.hex() for key in pairs))}.lock"
        for start in range(0, len(missing), CHUNK):
            chunk = missing[start : start + CHUNK]
            with exclusive(lock):
                found |= _usable(cache.get(chunk), store)
                new = _scored({key: pairs[key] for key in chunk if key not in found}, scorer, corpus)
                cache.put(new)
            store.note_made(key.hex() for key in new)
            found |= new
            reporter.advance(len(chunk))
    return [[found[key] for key in line] for line in keys]


def _keys(asked: Sequence[Asked], scorer: PairScorer, corpus: Corpus) -> list[list[bytes]]:
    model = digest(scorer.describe())
    rows = sorted({int(row) for query in asked for row in query.rows})
    hashes: dict[int, bytes] = {}
    for start in range(0, len(rows), TEXTS):
        part = rows[start : start + TEXTS]
        hashes.update(zip(part, map(text_hash, corpus.texts(part)), strict=True))
    queries = [text_hash(query.text) for query in asked]
    return [
        [pair_key(model, query, hashes[int(row)]) for row in line.rows]
        for query, line in zip(queries, asked, strict=True)
    ]


def _both(line: Sequence[bytes], query: Asked) -> Iterator[tuple[bytes, int]]:
    return zip(line, map(int, query.rows), strict=True)


def _usable(found: Mapping[bytes, Scored], store: Store) -> dict[bytes, Scored]:
    """Leave out what a run that starts over did not score itself."""
    return {key: scored for key, scored in found.items() if store.usable(key.hex())}


def _scored(pairs: Mapping[bytes, tuple[Asked, int]], scorer: PairScorer, corpus: Corpus) -> dict[bytes, Scored]:
    texts = corpus.texts([row for _, row in pairs.values()])
    inputs = [(query.text, text) for (query, _), text in zip(pairs.values(), texts, strict=True)]
    try:
        return dict(zip(pairs, scorer.score(inputs), strict=True))
    except NotFiniteError as error:
        query, row = list(pairs.values())[error.index]
        raise UserError(
            f"the score of query {query.id} and document {corpus.id(row)} is NaN or infinite ({error.hint})"
        ) from None
