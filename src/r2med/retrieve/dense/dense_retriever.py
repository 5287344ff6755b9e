"""A dense model as a retriever: encode the corpus once, then search it exactly."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from r2med.cost import Cost
from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.encoders.encoder import Encoded, Encoder, open_encoder
from r2med.encoders.model_cards import MODELS, ModelCard, resolve_card
from r2med.engine.work import THREADS, Engine
from r2med.errors import UserError
from r2med.retrieve.dense.embeddings import Embeddings, embed_corpus, embed_texts
from r2med.retrieve.dense.exact import search_exact
from r2med.retrieve.dense.gpu import Chunk
from r2med.retrieve.dense.proposals import ProposeNearest, search_by_nodes
from r2med.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, SearchQuery
from r2med.retrieve.run import Run
from r2med.setup import Setup
from r2med.stages import Stage
from r2med.store import Store, about


class Dense(Stage, kind="retrieve"):
    """Compare vectors of an embedding model: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return what the model of a card is."""
        card = MODELS.get(name)
        if card is None:
            return super().summary(name)
        return f"Embeddings of {card.repository or card.query.repository or card.package or card.name}."

    def open(self, setup: Setup) -> DenseRetriever:
        """Return the retriever; the model is loaded when it encodes."""
        return DenseRetriever(self, setup)


@dataclass(frozen=True)
class DenseRetriever:
    """An embedding model that searches a corpus exactly."""

    stage: Stage
    setup: Setup

    @cached_property
    def card(self) -> ModelCard:
        """The model's card; one without is given what its repository or folder says."""
        return resolve_card(self.stage.name)

    def encoder(self, dataset: Dataset, store: Store | None = None) -> Encoder:
        """Return what encodes for a dataset."""
        return open_encoder(self.card, dataset.instruction, self.setup, store)

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on."""
        encoder = self.encoder(dataset)
        roles = {role: encoder.describe(role) for role in ("query", "document", "generated")}
        return {**self.stage.settings(), "similarity": self.card.similarity, **roles}

    def index(self, dataset: Dataset, store: Store) -> DenseSearcher:
        """Return a searcher; vectors that are in the store are not encoded again."""
        if not len(dataset.corpus):
            raise UserError("the corpus is empty: there is nothing to search")
        encoder = self.encoder(dataset, store)
        with about(dataset=dataset.name, model=self.stage.name):
            embeddings = embed_corpus(dataset.corpus, encoder, store, self.setup.engine)
        return DenseSearcher(self, dataset.corpus, encoder, embeddings, store)


_TURN = threading.Lock()
"""Questions that come at once are encoded one after the other: not every tokenizer and model bears several threads."""


class DenseSearcher:
    """Searches one corpus."""

    def __init__(
        self, retriever: DenseRetriever, corpus: Corpus, encoder: Encoder, embeddings: Embeddings, store: Store | None
    ) -> None:
        self._retriever = retriever
        self._corpus = corpus
        self._encoder = encoder
        self._embeddings = embeddings
        self._store = store
        self._kept: list[Chunk] = []

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k nearest documents of each query, exactly."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        with _TURN, about(model=self._retriever.stage.name):
            asked = query_vectors(queries, self._encoder, self._store, self._retriever.setup.engine)
        vectors, card = asked.vectors, self._retriever.card
        if vectors.shape[1] != self._embeddings.dimension:
            sizes = f"{vectors.shape[1]} for queries and {self._embeddings.dimension} for documents"
            raise UserError(f"{self._retriever.stage.name} gives vectors of different lengths: {sizes}")
        started = time.perf_counter()
        cosine, setup = card.similarity == "cosine" and not card.normalise, self._retriever.setup
        ranks, work = self._corpus.id_ranks(), ProposeNearest(vectors, k, cosine, setup.memory)
        hits = search_by_nodes(self._embeddings.shards, work, ranks, setup.engine, self._store)
        if hits is None:
            hits = search_exact(
                vectors,
                self._embeddings.blocks,
                k,
                ranks,
                cosine=cosine,
                memory=setup.memory,
                device=setup.device,
                kept=self._kept,
            )
        run = Run.ranked([query.query.id for query in queries], hits, self._corpus)
        # As if the queries had been encoded just now: what is in the store took its time when it was made.
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), self._embeddings.cost)

    def live(self) -> DenseSearcher:
        """Return one that keeps no vector of a query."""
        searcher = copy.copy(self)
        searcher._store = None
        return searcher


def query_vectors(
    queries: Sequence[SearchQuery], encoder: Encoder, store: Store | None, engine: Engine = THREADS
) -> Encoded:
    """Return one vector per query, with what was generated for it.

    As the benchmark does it: the mean of the query's vector and the generated text's (of several texts, of
    their mean), unless the query says that they are joined to one string.
    """
    stored = embed_texts([_query_text(query) for query in queries], "query", encoder, store, engine)
    vectors, cost = np.array(stored.vectors), stored.cost
    averaged = [(i, q.generated) for i, q in enumerate(queries) if q.generated and q.dense_form in (MEAN, TEXTS_ALONE)]
    if averaged:
        flat = [text for _, generated in averaged for text in generated]
        written = embed_texts(flat, "generated", encoder, store, engine)
        cost += written.cost
        ends = np.cumsum([len(generated) for _, generated in averaged])
        for (index, generated), end in zip(averaged, ends, strict=True):
            mean = written.vectors[end - len(generated) : end].mean(axis=0)
            vectors[index] = mean if queries[index].dense_form == TEXTS_ALONE else (vectors[index] + mean) / 2
    return Encoded(vectors, cost)


def _query_text(search: SearchQuery) -> str:
    if search.generated and search.dense_form not in (MEAN, TEXTS_ALONE):
        # Filled at once: a query may have the words {text} in it.
        return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))
    return search.query.text
