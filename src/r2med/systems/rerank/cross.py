"""Rerank candidates with a cross-encoder, in this process or behind a rerank API.

The model reads each candidate together with the query and returns a score. Candidates are sorted by this score.

Scores are cached. The key of a score contains the model's key and the two texts. So a cached score is used
again in every run, depth and dataset that contains the pair. Scores are saved chunk by chunk, so an interrupted run
continues where it stopped. The texts are not saved.
"""

from __future__ import annotations

import hashlib
import math
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import Field

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import Instruction
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData, gpu_memory
from r2med.foundation.engine.reporting import Reporter
from r2med.foundation.engine.work import HERE, THREADS, Engine, Needs, Work
from r2med.foundation.pages.cells import shown_dollars
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Bound, Stage, depth_field
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import text_digest
from r2med.foundation.store.memo import Memo, Missing
from r2med.models.crossencoders.api_scorer import ApiScorer, api_missing
from r2med.models.crossencoders.pair_scorer import PairScorer, ScoredPair, cost_of, open_scorer
from r2med.models.crossencoders.pairs import Pair
from r2med.models.crossencoders.rerank_apis import DOCUMENTS_PER_SEARCH, own_servers
from r2med.models.crossencoders.reranker_cards import RERANKERS, RerankerCard, is_served, resolve_reranker
from r2med.models.encoders.encoder import NotFiniteError, check_same_key
from r2med.models.encoders.model_estimates import (
    PASSAGE_TOKENS,
    bytes_to_fetch,
    model_memory,
    own_weights,
    reading_seconds,
)
from r2med.systems.rerank.reranking import Reranked, Rows, candidates, query_text, reranked
from r2med.systems.retrieve.retriever import SearchQuery

PAIRS_PER_CHUNK = 512
"""Number of pairs in a chunk. Large enough for batches of similar lengths, small enough to lose little work."""

TEXTS_PER_READ = 4096
"""Number of documents read at a time to compute their digests."""

PAIRS_AT_ONCE = 4096
"""Number of pairs whose texts are in memory for an API, at least. Each request is saved by itself."""

_SCORE_FORMAT = struct.Struct("<dq?dd")


class PairStage(Stage):
    """Settings of rerankers that score each candidate together with the query."""

    query: Literal["original", "expanded"] = Field(
        "original",
        description="expanded: documents are scored against the query together with its generated text",
    )
    depth: int = depth_field()


class CrossEncoder(PairStage, kind="rerank"):
    """Score each candidate together with the query by a cross-encoder, and sort by the score."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = RERANKERS.get(name)
        if card is None:
            return super().summary(name)
        return (
            f"Scores of {card.repository}, by its API."
            if card.is_api
            else f"Scores of the cross-encoder {card.repository}."
        )

    def reuses(self, smaller: Stage) -> bool | None:
        """Return True: the score of a pair is kept, and a larger depth only adds pairs."""
        return smaller.name == self.name

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return how many pairs would be scored and how much would be downloaded."""
        card = resolve_reranker(self.name) if _is_api(self.name) else None
        if card is not None:
            return [
                _api_plan(str(self), card, [(each.queries, min(self.depth, each.documents)) for each in data], runtime)
            ]
        pairs = sum(each.queries * min(self.depth, each.documents) for each in data)
        fetch, missing = bytes_to_fetch(self.name, RERANKERS, resolve_reranker, runtime.setup)
        known = seconds_per_pair(runtime.store, self.name)
        seconds = reading_seconds(RERANKERS, self.name, 2 * pairs, runtime.setup) if known is None else pairs * known
        work = f"scores {pairs:,} pairs of queries and documents{own_weights(self.name)}"
        return [Plan(str(self), work, fetch, seconds, missing, memory=model_memory(self.name, RERANKERS))]

    def bind(self, runtime: Runtime) -> PairReranker[Any]:
        """Return the reranker of a card, hf:ORG/NAME, path:DIR or py:MODULE:NAME. No weights are loaded yet."""
        return CrossReranker(self, runtime, resolve_reranker(self.name))


PairStageType = TypeVar("PairStageType", bound=PairStage)


@dataclass(frozen=True)
class PairReranker(Bound[PairStageType]):
    """Reranker that sorts candidates by the scores of a model for pairs.

    The model is not loaded while the cache has all scores.
    """

    runtime: Runtime
    _scorers: dict[Instruction, PairScorer] = field(default_factory=dict, init=False, compare=False, repr=False)

    @property
    @abstractmethod
    def memo_name(self) -> str:
        """The name of the cache of scores."""

    @property
    def model_name(self) -> str:
        """The name of the model's lock. Rerankers with the same model share it."""
        return self.memo_name

    @abstractmethod
    def open_scorer(self, dataset: Dataset) -> PairScorer:
        """Return the scorer for the instruction of a dataset. No weights are loaded yet."""

    def cost(self, scored: Sequence[ScoredPair]) -> Cost:
        """Return the cost of some scores."""
        return cost_of(scored)

    @property
    def depth(self) -> int:
        """Number of candidates that are reranked for each query."""
        return self.stage.depth

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        scorer = self._scorer(dataset)
        # The pin is not part of the scorer's key. Scores depend on the commit alone, so they stay valid when
        # the commit is pinned later.
        pinned = {} if getattr(scorer, "pinned", True) else {"pinned": False}
        return {**self.stage.settings(), **scorer.key(), **pinned}

    def rerank(self, dataset: Dataset, queries: Sequence[SearchQuery], run: Run, store: Store) -> Reranked:
        """Return the run with the first candidates of each query sorted by their scores."""
        ranked = [
            RankedQuery(query.query.id, query_text(query, self.stage.query), rows)
            for query, rows in zip(queries, candidates(run, self.depth), strict=True)
        ]
        if not any(len(query.rows) for query in ranked):
            return Reranked(run, notices=(f"{self.name}: the run has no documents, so there is nothing to rerank",))
        scorer, engine = self._scorer(dataset), self.runtime.engine
        with self.runtime.turn(("model", self.model_name)):  # not every model is safe in threads
            scored = pair_scores(ranked, scorer, dataset.corpus, store, self.memo_name, engine)
        scores = [np.asarray([pair.score for pair in line], dtype=np.float64) for line in scored]
        return Reranked(reranked(run, self.depth, scores), self.cost([pair for line in scored for pair in line]))

    def _scorer(self, dataset: Dataset) -> PairScorer:
        words = dataset.instruction
        if words not in self._scorers:
            self._scorers[words] = self.open_scorer(dataset)
        return self._scorers[words]


@dataclass(frozen=True)
class CrossReranker(PairReranker[CrossEncoder]):
    """Reranker that sorts candidates by a cross-encoder's scores."""

    card: RerankerCard

    @property
    def memo_name(self) -> str:
        """The name of the card."""
        return self.card.name

    @property
    def model_name(self) -> str:
        """The repository of the model."""
        return self.card.repository or self.card.name

    def open_scorer(self, dataset: Dataset) -> PairScorer:
        """Return the scorer of the card."""
        return open_scorer(self.card, dataset.instruction, self.runtime)

    def cost(self, scored: Sequence[ScoredPair]) -> Cost:
        """Return the cost of some scores at the prices of the card."""
        return cost_of(scored, self.card)


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
class ScorePairs(Work[PairBlock, list[ScoredPair]]):
    """Work that scores blocks of pairs on any machine that opens the same model."""

    scorer: PairScorer
    key: dict[str, Any]

    @property
    def needs(self) -> Needs:
        """Where the work can run. A scorer that does not declare this runs on this machine."""
        needs: Needs = getattr(self.scorer, "needs", HERE)
        return needs

    def check(self) -> None:
        """Raise UserError if the model on this machine has a different key."""
        check_same_key(self.key, self.scorer.key())

    def __call__(self, block: PairBlock, store: Store) -> list[ScoredPair]:
        """Return the scores of a block. Raises UserError that names the pair if a score is not finite."""
        try:
            return self.scorer.score(block.pairs)
        except NotFiniteError as error:
            query, document = block.ids[error.index]
            raise UserError(
                f"the score of query {query} and document {document} is NaN or infinite (",
                error.hint,
                ")",
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
        scores = dict(zip(pairs, work(_block(pairs, corpus), store), strict=True))
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
                for block, scored in engine.map(work, _even_blocks(wanted, pairs, corpus), store, work.needs):
                    wanted.put(dict(zip(block.keys, scored, strict=True)))

        def known(new: Mapping[bytes, ScoredPair], stored: bool) -> None:
            store.note_made(() if stored else (key.hex() for key in new))
            reporter.advance(len(new))

        scores = missing.fill(ask, known)
    return [[scores[key] for key in line] for line in keys]


TIMED_PAIRS = 10_000
"""Number of pairs whose time an estimate uses. A cache may have millions."""


def seconds_per_pair(store: Store, name: str) -> float | None:
    """Return the mean time of the newest pairs in the cache of a model, or None if the cache is empty."""
    if not store.memo_file("scores", name).is_file():
        return None
    with score_memo(store, name) as memo:
        scored = memo.newest(TIMED_PAIRS)
    return sum(pair.seconds for pair in scored) / len(scored) if scored else None


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


def _is_api(name: str) -> bool:
    card = RERANKERS.get(name)
    return card.is_api if card else is_served(name)


def _api_plan(name: str, card: RerankerCard, sizes: Sequence[tuple[int, int]], runtime: Runtime) -> Plan:
    """Return the plan of a reranker behind an API. `sizes` are the queries of each dataset and their candidates."""
    pairs = sum(queries * depth for queries, depth in sizes)
    searches = sum(queries * math.ceil(depth / DOCUMENTS_PER_SEARCH) for queries, depth in sizes)
    tokens = 2 * PASSAGE_TOKENS * pairs
    dollars = card.dollars(tokens, searches)
    price = f"about ${shown_dollars(dollars)}" if card.is_priced else "its price is not in the card"
    free = card.loader in own_servers()
    known = seconds_per_pair(runtime.store, card.name)
    work = f"scores {pairs:,} pairs of queries and documents by an API{'' if free else f', {price}'}"
    seconds = None if known is None else pairs * known / runtime.setup.concurrency
    return Plan(
        name,
        work,
        0.0,
        seconds,
        api_missing(card, runtime.setup),
        served=gpu_memory(card.parameters) if free else 0.0,
        prompt_tokens=tokens,
        dollars=dollars if card.is_priced and not free else None,
    )


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
