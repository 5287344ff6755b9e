"""Dense retriever: encode the corpus once, then search it exactly."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.engine.work import THREADS, Engine
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import NO_PASSAGES, Encoded, Encoder, Vectors, modules_of_loader
from r2med.models.encoders.model_cards import LATE_LOADERS, MODELS, resolve_card
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.dense.proposals import ProposeNearest, search_by_nodes
from r2med.systems.retrieve.exact.exact_scores import Block
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Hits
from r2med.systems.retrieve.late.late_retriever import LATE_RETRIEVERS
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import embed_texts
from r2med.systems.retrieve.vectors.vector_retriever import EmbeddedCorpus, VectorRetriever, VectorSearch


class Dense(VectorSearch, kind="retrieve"):
    """Compare vectors of an embedding model: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = MODELS.get(name)
        if card is None:
            return super().summary(name)
        return f"Embeddings of {card.repository or card.query.repository or card.package or card.name}."

    def bind(self, runtime: Runtime) -> VectorRetriever:
        """Return the retriever for the loader of the model's card. Weights are loaded for the first text."""
        if self.name.startswith("hf:"):  # otherwise the hub would be asked for its card before
            check_installed(self.name, modules_of_loader("transformers", runtime.setup))
        card = resolve_card(self.name)
        kind = LATE_RETRIEVERS[card.loader] if card.loader in LATE_LOADERS else DenseRetriever
        return kind(self, runtime, card)


@dataclass(frozen=True)
class DenseRetriever(VectorRetriever):
    """An embedding model that searches a corpus."""

    @property
    def takes_cosine(self) -> bool:
        """True if vectors must still be scaled to length 1. This is always so for the first numbers of a vector."""
        return self.card.similarity == "cosine" and (not self.card.normalise or bool(self.stage.dims))

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        if self.stage.passages and not self.encoder(dataset).cuts_passages:
            raise UserError(NO_PASSAGES.format(model=self.stage.name))
        return super().key(dataset)

    def index(self, dataset: Dataset, store: Store) -> DenseSearcher:
        """Return a searcher. Vectors in the store are not encoded again."""
        return DenseSearcher(self, self.embedded(dataset, store))


class DenseSearcher(Searcher):
    """Dense search over one corpus."""

    def __init__(self, retriever: DenseRetriever, embedded: EmbeddedCorpus) -> None:
        self._retriever = retriever
        self._corpus, self._encoder, self._embeddings = embedded.corpus, embedded.encoder, embedded.embeddings
        self._store: Store | None = embedded.store
        self._cache = SearchCache()
        self._turn = retriever.turn(embedded.encoder)

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k nearest documents of each query."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        asked = self._vectors(queries)
        started = time.perf_counter()
        hits = self._nearest(asked.vectors, k)
        run = Run.ranked([query.query.id for query in queries], hits, self._corpus)
        # The cost of vectors from the store is the cost of making them, as if the queries had been encoded now.
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), self._embeddings.cost)

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
