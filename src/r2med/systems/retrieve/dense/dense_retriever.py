"""Dense retriever: encode the corpus once, then search it exactly or with an approximate index."""

from __future__ import annotations

import copy
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.data.dataset_cards import Instruction
from r2med.data.runs.run import Run
from r2med.foundation.core.approximation import Approximation
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.plan import Plan, PlannedData
from r2med.foundation.core.stages import Bound, Stage
from r2med.foundation.engine.work import THREADS, Engine
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, digest
from r2med.foundation.store.dataset_labels import Labels
from r2med.foundation.text.plurals import counted
from r2med.models.encoders.encoder import LOADERS, NO_PASSAGES, Encoded, Encoder, Vectors, open_encoder
from r2med.models.encoders.model_cards import LATE_LOADERS, MODELS, LateLoader, ModelCard, resolve_card
from r2med.models.encoders.model_estimates import (
    PASSAGE_TOKENS,
    bytes_to_fetch,
    model_memory,
    own_weights,
    reading_seconds,
)
from r2med.models.encoders.passage_encoder import PassageEncoder
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.weights import IN_FOLDER
from r2med.systems.retrieve.dense.approximate import Hnsw, Segments, build_segments, load_faiss
from r2med.systems.retrieve.dense.proposals import ProposeNearest, search_by_nodes
from r2med.systems.retrieve.dense.recall import SAMPLE_QUERIES, SAMPLE_SEED, mean_recall, sampled
from r2med.systems.retrieve.exact.exact_scores import Block
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Hits
from r2med.systems.retrieve.late.late_searcher import LateSearcher
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import Embeddings, embed_corpus, embed_texts, may_change


class VectorSearch(Stage):
    """Settings of stages that search vectors. The search is exact unless an approximate index is chosen."""

    index: Literal["exact", "hnsw"] = Field(
        "exact",
        description="exact: compare all vectors. hnsw: use a graph, which is approximate; the record shows its recall "
        "(extra: ann)",
    )
    links: int = Field(32, ge=4, le=64, description="hnsw: number of neighbours of a document in the graph")
    ef: int = Field(
        200, ge=1, le=100_000, description="hnsw: number of candidates of a search; the depth is used if it is larger"
    )
    dims: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="numbers of each vector that are used, the first ones (for Matryoshka models); 0: all",
    )
    passages: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="tokens of a passage: a long document has a vector for each passage, and its best passage counts; "
        "0: one vector for the document, which the model cuts at its limit",
    )

    @model_validator(mode="after")
    def _parameters_fit(self) -> Self:
        for name, _ in self.changed:
            if name in ("links", "ef") and self.index != "hnsw":
                raise ValueError(f"{name} is a parameter of index=hnsw")
            if name == "dims" and self.index != "exact":
                raise ValueError(f"dims and index={self.index} do not go together: an index has its own vectors")
            if name == "passages" and self.index != "exact":
                raise ValueError(f"passages and index={self.index} do not go together: the index has whole documents")
        return self

    @property
    def approximate(self) -> Hnsw | None:
        """The approximate index, or None for exact search."""
        return Hnsw(self.links, self.ef) if self.index == "hnsw" else None

    @property
    def vectors_label(self) -> str:
        """The name of the vectors of documents in the store."""
        return f"{self.name}(passages={self.passages})" if self.passages else self.name

    def plan(self, data: Sequence[PlannedData], runtime: Runtime) -> list[Plan]:
        """Return how many documents would be encoded and how much would be downloaded."""
        card = MODELS.get(self.name)
        kept_in = STORED_IN[card.loader] if card and card.loader in LATE_LOADERS else "vectors"
        todo = [each for each in data if not each.keeps(kept_in, self.vectors_label)]
        documents = sum(each.documents for each in todo)
        fetch, missing = bytes_to_fetch(self.name, MODELS, resolve_card, runtime.setup)
        kept = f"{len(data) - len(todo)} of {len(data)} datasets are in the store{own_weights(self.name)}"
        seconds = reading_seconds(MODELS, self.name, documents, runtime.setup)
        work = f"encodes {counted(documents, 'document')}; {kept}"
        price = card.price_per_million_tokens if card else 0.0
        sent = documents * PASSAGE_TOKENS if price else 0
        return [
            Plan(
                str(self),
                work,
                fetch if todo else 0.0,
                seconds,
                missing,
                memory=model_memory(self.name, MODELS),
                prompt_tokens=sent,
                dollars=sent * price / 1e6,
            )
        ]


STORED_IN: Mapping[LateLoader, str] = {"multi-vector": "token-vectors", "sparse": "term-weights"}
"""Loader -> the folder of the store for documents. That of all other loaders is `vectors`."""


class Dense(VectorSearch, kind="retrieve"):
    """Compare vectors of an embedding model: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = MODELS.get(name)
        if card is None:
            return super().summary(name)
        return f"Embeddings of {card.repository or card.query.repository or card.package or card.name}."

    def bind(self, runtime: Runtime) -> DenseRetriever:
        """Return the retriever. The model is loaded when it encodes the first text."""
        return DenseRetriever(self, runtime)


@dataclass(frozen=True)
class DenseRetriever(Bound[VectorSearch]):
    """An embedding model that searches a corpus."""

    runtime: Runtime
    _encoders: dict[tuple[Instruction, Path, Labels], Encoder] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def card(self) -> ModelCard:
        """The model's card. For a model without one, the card is made from its repository or folder."""
        return resolve_card(self.stage.name)

    @property
    def takes_cosine(self) -> bool:
        """True if vectors must still be scaled to length 1. This is always so for the first numbers of a vector."""
        return self.card.similarity == "cosine" and (not self.card.normalise or bool(self.stage.dims))

    def encoder(self, dataset: Dataset, store: Store | None = None) -> Encoder:
        """Return the encoder for a dataset. Datasets with the same instruction share an encoder."""
        kept = store or self.runtime.store
        # An API's answers get the labels of the store. Other encoders store nothing themselves.
        key = dataset.instruction, kept.root, Labels() if self.card.loader in LOADERS else kept.labels
        if key not in self._encoders:
            encoder = open_encoder(self.card, dataset.instruction, self.runtime, kept)
            self._encoders[key] = PassageEncoder(encoder, self.stage.passages) if self.stage.passages else encoder
        return self._encoders[key]

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        if self.card.loader in LATE_LOADERS and self.stage.changed:
            typed = ", ".join(f"{key}={value}" for key, value in self.stage.changed)
            raise UserError(f"{self.stage.name}: {typed} needs a model with one vector per text")
        encoder = self.encoder(dataset)
        if self.stage.passages and not encoder.cuts_passages:
            raise UserError(NO_PASSAGES.format(model=self.stage.name))
        roles = {role: encoder.key(role) for role in ("query", "document", "generated")}
        # The pin is not part of the key of a role. Vectors depend on the revision alone, so they stay valid
        # when it is pinned later.
        pinned = {} if encoder.pinned else {"pinned": False}
        weights = {"weights": IN_FOLDER} if encoder.in_folder else {}
        return {**self.stage.settings(), "similarity": self.card.similarity, **roles, **pinned, **weights}

    def index(self, dataset: Dataset, store: Store) -> DenseSearcher | LateSearcher:
        """Return a searcher. Vectors in the store are not encoded again."""
        if not len(dataset.corpus):
            raise UserError("the corpus is empty: there is nothing to search")
        if self.card.loader in LATE_LOADERS:
            return self._late_searcher(self.card.loader, dataset, store)
        kind = self.stage.approximate
        if kind:
            load_faiss()  # A missing library is reported before hours of encoding.
        store = store.about(dataset.label, model=self.stage.vectors_label)
        encoder = self.encoder(dataset, store)
        embeddings = embed_corpus(dataset.corpus, encoder, store, self.runtime.engine, reuse=may_change(dataset))
        segments = (
            build_segments(embeddings.shards, kind, store, cosine=self.takes_cosine, memory=self.runtime.setup.memory)
            if kind
            else None
        )
        return DenseSearcher(self, dataset.corpus, encoder, embeddings, store, segments)

    def _late_searcher(self, loader: LateLoader, dataset: Dataset, store: Store) -> LateSearcher:
        store = store.about(dataset.label, model=self.stage.vectors_label)
        encoder = self.encoder(dataset, store)
        turn = _turn(encoder, self.stage.name, self.runtime)
        return LateSearcher(self.stage.name, loader, dataset, encoder, store, self.runtime, turn)

    def approximations(
        self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, store: Store
    ) -> tuple[Approximation, ...]:
        """Return the recall of an approximate search of these queries, or nothing if the search is exact."""
        kind = self.stage.approximate
        if kind is None or not queries:
            return ()
        asked = [query.key for query in queries]
        key = digest(["recall", SAMPLE_QUERIES, SAMPLE_SEED, self.key(dataset), dataset.corpus.fingerprint, asked, k])

        def build(folder: Path) -> dict[str, Any]:
            searcher = self.index(dataset, store)
            assert isinstance(searcher, DenseSearcher)  # others have no approximate index
            recall, seconds = searcher.recall(queries, k)
            return {"recall": recall, "sample": min(SAMPLE_QUERIES, len(queries)), "measured": seconds}

        meta = store.about(dataset.label, model=self.stage.name).make("recall", key, build).meta
        measured = meta["recall"], meta["sample"], meta["measured"]
        return (Approximation(str(self.stage), kind.name, asdict(kind), *measured),)


def _turn(encoder: Encoder, name: str, runtime: Runtime) -> AbstractContextManager[object]:
    """Return the lock of an encoder's model, because not every tokenizer is thread-safe.

    Variants of a model share one lock. Different models do not wait for each other.
    """
    return runtime.turn(("model", str(encoder.key("document").get("model", name))))


class DenseSearcher(Searcher):
    """Dense search over one corpus."""

    def __init__(
        self,
        retriever: DenseRetriever,
        corpus: Corpus,
        encoder: Encoder,
        embeddings: Embeddings,
        store: Store | None,
        segments: Segments | None,
    ) -> None:
        self._retriever = retriever
        self._corpus = corpus
        self._encoder = encoder
        self._embeddings = embeddings
        self._store = store
        self._segments = segments
        self._cache = SearchCache()
        self._turn = _turn(encoder, retriever.stage.name, retriever.runtime)

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k nearest documents of each query: exactly, or among those that the index proposes."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        asked, prepared = self._vectors(queries), self._embeddings.cost
        started = time.perf_counter()
        if self._segments:
            prepared += self._segments.cost
        hits = self._nearest(asked.vectors, k)
        run = Run.ranked([query.query.id for query in queries], hits, self._corpus)
        # The cost of vectors from the store is the cost of making them, as if the queries had been encoded now.
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), prepared)

    def recall(self, queries: Sequence[SearchQuery], k: int) -> tuple[dict[str, float], float]:
        """Return the recall of the approximate search on a sample of queries, and the seconds that this took."""
        vectors = self._vectors(queries).vectors[sampled(len(queries))]
        started = time.perf_counter()
        recall = mean_recall(self._nearest(vectors, k), self._exactly(vectors, k), k, self._corpus.id_ranks())
        return recall, time.perf_counter() - started

    def _vectors(self, queries: Sequence[SearchQuery]) -> Encoded:
        stage, runtime = self._retriever.stage, self._retriever.runtime
        with self._turn:
            asked = query_vectors(queries, self._encoder, self._store, runtime.engine)
        if asked.vectors.shape[1] != self._embeddings.dimension:
            sizes = f"{asked.vectors.shape[1]} for queries and {self._embeddings.dimension} for documents"
            raise UserError(f"{stage.name} returned vectors of different lengths: {sizes}")
        if stage.dims > self._embeddings.dimension:
            raise UserError(f"{stage}: its vectors have {self._embeddings.dimension} numbers, fewer than dims")
        return replace(asked, vectors=asked.vectors[:, : stage.dims]) if stage.dims else asked

    def _blocks(self) -> Sequence[Block]:
        """Return the vectors of the documents or of their passages, or the first numbers of these."""
        parts, dims = self._embeddings.parts, self._retriever.stage.dims
        if not dims:
            return parts
        return [(first, Ragged({"vectors": part.arrays["vectors"][:, :dims]}, part.offsets)) for first, part in parts]

    def _nearest(self, vectors: Vectors, k: int) -> list[Hits]:
        if self._segments is None:
            return self._exactly(vectors, k)
        ranks, cosine = self._corpus.id_ranks(), self._retriever.takes_cosine
        return self._segments.search(vectors, self._embeddings.blocks, k, ranks, cosine=cosine)

    def _exactly(self, vectors: Vectors, k: int) -> list[Hits]:
        cosine, runtime = self._retriever.takes_cosine, self._retriever.runtime
        ranks, work = self._corpus.id_ranks(), ProposeNearest(vectors, k, cosine, runtime.setup.memory)
        stage = self._retriever.stage
        if not stage.dims and not stage.passages:  # nodes compare whole vectors of whole documents
            hits = search_by_nodes(self._embeddings.shards, work, ranks, runtime.engine, self._store)
            if hits is not None:
                return hits
        return search_exact(
            vectors,
            self._blocks(),
            k,
            ranks,
            cosine=cosine,
            memory=runtime.setup.memory,
            device=runtime.setup.device,
            cache=self._cache,
        )

    def live(self) -> DenseSearcher:
        """Return a searcher that does not save the vectors of queries."""
        searcher = copy.copy(self)
        searcher._store = None
        return searcher


def query_vectors(
    queries: Sequence[SearchQuery], encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Encoded:
    """Return one vector per query, including its generated text.

    As in the benchmark, this is the mean of the vectors of the query and of the generated text. Several generated texts
    are averaged first. Some queries instead join both to one string.
    """
    stored = embed_texts([_query_text(query) for query in queries], "query", encoder, store, engine)
    vectors, cost = np.array(stored.arrays["vectors"]), stored.cost
    averaged = [(i, q.generated) for i, q in enumerate(queries) if q.generated and q.dense_form in (MEAN, TEXTS_ALONE)]
    if averaged:
        flat = [text for _, generated in averaged for text in generated]
        written = embed_texts(flat, "generated", encoder, store, engine)
        cost += written.cost
        ends = np.cumsum([len(generated) for _, generated in averaged])
        for (index, generated), end in zip(averaged, ends, strict=True):
            mean = written.arrays["vectors"][end - len(generated) : end].mean(axis=0)
            vectors[index] = mean if queries[index].dense_form == TEXTS_ALONE else (vectors[index] + mean) / 2
    return Encoded(vectors, cost)


def _query_text(search: SearchQuery) -> str:
    if search.generated and search.dense_form not in (MEAN, TEXTS_ALONE):
        # Both fields are filled at once, because a query may contain the words {text}.
        return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))
    return search.query.text
