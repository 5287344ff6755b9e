"""Score pairs of queries and documents, each pair once.

Scores are cached. The key of a score contains the model's key and the two texts. So a cached score is used
again in every run, depth and dataset that contains the pair. Scores are saved chunk by chunk, so an interrupted run
continues where it stopped. The texts are not saved.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any

from r2med.data.corpus import Corpus
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import HERE, THREADS, Engine, Key, WorkNeeds
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import text_digest
from r2med.foundation.store.memo import Memo, Missing
from r2med.models.crossencoders.api_scorer import ApiScorer
from r2med.models.crossencoders.pair_scorer import PairScorer, ScoredPair
from r2med.models.crossencoders.pairs import Pair
from r2med.models.encoders.encoder import NotFiniteError
from r2med.systems.rerank.reranking import Rows

PAIRS_PER_CHUNK = 512
"""Number of pairs in a chunk. Large enough for batches of similar lengths, small enough to lose little work."""

TEXTS_PER_READ = 4096
"""Number of documents read at a time to compute their digests."""

PAIRS_AT_ONCE = 4096
"""Number of pairs whose texts are in memory for an API, at least. Each request is saved by itself."""

_SCORE_FORMAT = struct.Struct("<dq?dd")


@dataclass(frozen=True)
class RankedQuery:
    """A query and the documents to score for it."""

    id: str
    text: str
    rows: Rows


@dataclass(frozen=True)
class PairBlock:
    """Pairs that are scored together, with the keys of their scores."""

    keys: tuple[bytes, ...]
    pairs: tuple[Pair, ...]
    ids: tuple[tuple[str, str], ...]
    """Ids of the query and the document of each pair, for error messages."""


@dataclass(frozen=True)
class ScorePairs:
    """Work that scores blocks of pairs on any machine that opens the same model."""

    scorer: PairScorer
    key: dict[str, Any]

    @property
    def needs(self) -> WorkNeeds:
        """Where the work can run. A scorer that does not declare this runs on this machine."""
        needs: WorkNeeds = getattr(self.scorer, "needs", HERE)
        return needs

    def __call__(self, block: PairBlock, store: Store) -> tuple[Key, list[ScoredPair]]:
        """Return the model's key and the scores of a block."""
        return self.scorer.key(), self.scores(block)

    def scores(self, block: PairBlock) -> list[ScoredPair]:
        """Return the scores of a block. Raises UserError that names the pair if a score is not finite."""
        try:
            return self.scorer.score(block.pairs)
        except NotFiniteError as error:
            query, document = block.ids[error.index]
            raise UserError(
                f"the score of query {query} and document {document} is NaN or infinite ({error.hint})",
            ) from None


def pair_scores(
    queries: Sequence[RankedQuery],
    scorer: PairScorer,
    corpus: Corpus,
    store: Store,
    name: str,
    engine: Engine = THREADS,
) -> list[list[ScoredPair]]:
    """Return the scores of each query's candidates, in the candidates' order.

    `name` is the name of the cache file.
    """
    work = ScorePairs(scorer, scorer.key())
    paid = scorer if isinstance(scorer, ApiScorer) else None
    keys = _keys(queries, digest(work.key), corpus)
    pairs = {
        key: (query, int(row))
        for query, line in zip(queries, keys, strict=True)
        for key, row in zip(line, query.rows, strict=True)
    }
    if not pairs:
        return [[] for _ in queries]
    if not store.keeps_questions:
        scores = dict(zip(pairs, work.scores(_block(pairs, corpus)), strict=True))
        return [[scores[key] for key in line] for line in keys]
    with score_memo(store, name) as memo:
        # A run that starts over uses only scores that it computed itself or that were paid for.
        missing = memo.missing(pairs, lambda key, scored: paid is not None or store.usable(key.hex()))
        reporter = Reporter("pairs", len(pairs), before=len(missing.answers))

        def ask(wanted: Missing[ScoredPair]) -> None:
            if paid is not None:
                for block in _whole_queries(wanted, pairs, corpus):
                    _score_and_save(paid, block, wanted.put)
            else:
                for block, scored in engine.map(work, _even_blocks(wanted, pairs, corpus), store, work.needs, work.key):
                    wanted.put(dict(zip(block.keys, scored, strict=True)))

        def known(new: Mapping[bytes, ScoredPair], stored: bool) -> None:
            store.note_made(() if stored else (key.hex() for key in new))
            reporter.advance(len(new))

        scores = missing.fill(ask, known)
    return [[scores[key] for key in line] for line in keys]


def score_memo(store: Store, name: str) -> Memo[ScoredPair]:
    """Open the scores of a model."""
    return Memo(store.memo_file("scores", name), packed, unpacked, store.labels.datasets)


def _keys(queries: Sequence[RankedQuery], model: str, corpus: Corpus) -> list[list[bytes]]:
    rows = sorted({int(row) for query in queries for row in query.rows})
    digests: dict[int, bytes] = {}
    for start in range(0, len(rows), TEXTS_PER_READ):
        part = rows[start : start + TEXTS_PER_READ]
        digests.update(zip(part, map(text_digest, corpus.texts(part)), strict=True))
    asked = [(query, text_digest(query.text)) for query in queries]
    return [[pair_key(model, text, digests[int(row)]) for row in query.rows] for query, text in asked]


def _even_blocks(
    missing: Iterable[bytes], pairs: Mapping[bytes, tuple[RankedQuery, int]], corpus: Corpus
) -> Iterator[PairBlock]:
    """Yield blocks of the same size."""
    keys = iter(missing)
    while block := list(islice(keys, PAIRS_PER_CHUNK)):
        yield _block({key: pairs[key] for key in block}, corpus)


def _whole_queries(
    missing: Iterable[bytes], pairs: Mapping[bytes, tuple[RankedQuery, int]], corpus: Corpus
) -> Iterator[PairBlock]:
    """Yield blocks in which all documents of a query are together, so that they can be sent together."""
    chunk: dict[bytes, tuple[RankedQuery, int]] = {}
    for _, keys in groupby(missing, key=lambda key: pairs[key][0].text):
        chunk |= {key: pairs[key] for key in keys}
        if len(chunk) >= PAIRS_AT_ONCE:
            yield _block(chunk, corpus)
            chunk = {}
    if chunk:
        yield _block(chunk, corpus)


def _score_and_save(scorer: ApiScorer, block: PairBlock, save: Callable[[Mapping[bytes, ScoredPair]], None]) -> None:
    scorer.score(block.pairs, lambda done: save({block.keys[index]: pair for index, pair in done.items()}))


def _block(pairs: Mapping[bytes, tuple[RankedQuery, int]], corpus: Corpus) -> PairBlock:
    rows = [row for _, row in pairs.values()]
    queries = [query for query, _ in pairs.values()]
    texts = zip((query.text for query in queries), corpus.texts(rows), strict=True)
    ids = zip((query.id for query in queries), corpus.ids(rows), strict=True)
    return PairBlock(tuple(pairs), tuple(texts), tuple(ids))


def pair_key(model: str, query: bytes, document: bytes) -> bytes:
    """Return the cache key of a pair, made from the digests of the model and of the two texts."""
    return hashlib.sha256(model.encode() + query + document).digest()


def packed(scored: ScoredPair) -> bytes:
    """Return a score as bytes for the cache."""
    return _SCORE_FORMAT.pack(*scored)


def unpacked(value: bytes) -> ScoredPair | None:
    """Return a score from the bytes in the cache, or None if they are not a valid score."""
    if len(value) != _SCORE_FORMAT.size:
        return None
    scored = ScoredPair(*_SCORE_FORMAT.unpack(value))
    return scored if math.isfinite(scored.score) else None
