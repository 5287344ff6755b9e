"""Dense retriever: encode the corpus once, then search it exactly."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
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
from r2med.models.encoders.model_cards import LATE_LOADERS, MODELS
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.dense.proposals import ProposeNearest, search_by_nodes
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Block, Hits
from r2med.systems.retrieve.late.opened_late import OpenedLate, OpenedTerms, OpenedTokens
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import embed_texts
from r2med.systems.retrieve.vectors.vector_retriever import EmbeddedCorpus, VectorSearch


class Dense(VectorSearch, kind="retrieve"):
    """Compare vectors of an embedding model: a card's name, hf:ORG/NAME, path:DIR or py:MODULE:NAME."""

    @classmethod
    def summary(cls, name: str) -> str:
        """Return a one-sentence description of the card's model."""
        card = MODELS.get(name)
        if card is None:
            return super().summary(name)
        return f"Embeddings of {card.repository or card.query.repository or card.package or card.name}."

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules that load the model."""
        if self.name.startswith("hf:"):  # otherwise the hub would be asked for its card before
            check_installed(self.name, modules_of_loader("transformers", runtime.setup))
        return super().modules(runtime)

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. Raises UserError for one that the model does not have."""
        is_late = self.card(runtime).loader in LATE_LOADERS
        if is_late and self.changed:
            typed = ", ".join(f"{key}={value}" for key, value in self.changed)
            raise UserError(f"{self.name}: {typed} needs a model with one vector per text")
        if self.passages and not is_late and not self.encoder(dataset, runtime).cuts_passages:
            raise UserError(NO_PASSAGES.format(model=self.name))
        return super().key(dataset, runtime)

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k nearest documents of each query. Vectors in the store are not encoded again."""
        opened = runtime.index((self, dataset.corpus.fingerprint), lambda: self._open(dataset, runtime))
        return opened.search(queries, k)

    def _open(self, dataset: Dataset, runtime: Runtime) -> OpenedVectors | OpenedLate:
        """Return the corpus ready to be searched, as the loader of the model's card says."""
        embedded = self.embedded(dataset, runtime)
        turn = self.turn(embedded.encoder, runtime)
        match self.card(runtime).loader:
            case "multi-vector":
                return OpenedTokens(embedded, turn)
            case "sparse":
                return OpenedTerms(embedded, turn)
        return OpenedVectors(self, embedded, turn, takes_cosine=self.takes_cosine(runtime))

    def takes_cosine(self, runtime: Runtime) -> bool:
        """Return True if vectors must still be scaled to length 1, as always for the first numbers of a vector."""
        card = self.card(runtime)
        return card.similarity == "cosine" and (not card.normalise or bool(self.dims))


class OpenedVectors:
    """A corpus with one vector for each document, or for each of its passages."""

    def __init__(
        self, stage: Dense, embedded: EmbeddedCorpus, turn: AbstractContextManager[object], *, takes_cosine: bool
    ) -> None:
        self._stage, self._embedded, self._turn, self._takes_cosine = stage, embedded, turn, takes_cosine
        self._cache = SearchCache()

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k nearest documents of each query."""
        encoded = self._query_vectors(queries)
        started = time.perf_counter()
        run = Run.ranked(
            [query.query.id for query in queries], self._nearest(encoded.vectors, k), self._embedded.corpus
        )
        # The cost of vectors from the store is the cost of making them, as if the queries had been encoded now.
        cost = encoded.cost + Cost(seconds=time.perf_counter() - started)
        return Searched(run, cost, self._embedded.embeddings.cost)

    def _query_vectors(self, queries: Sequence[SearchQuery]) -> Encoded:
        stage, embedded = self._stage, self._embedded
        with self._turn:
            encoded = query_vectors(queries, embedded.encoder, embedded.query_store, embedded.runtime.engine)
        dimension = embedded.embeddings.dimension
        if encoded.vectors.shape[1] != dimension:
            sizes = f"{encoded.vectors.shape[1]} for queries and {dimension} for documents"
            raise UserError(f"{stage.name} returned vectors of different lengths: {sizes}")
        if stage.dims > dimension:
            raise UserError(f"{stage}: its vectors have {dimension} numbers, fewer than dims")
        return replace(encoded, vectors=encoded.vectors[:, : stage.dims]) if stage.dims else encoded

    def _blocks(self) -> Sequence[Block]:
        """Return the vectors of the documents or of their passages, or the first numbers of these."""
        parts, dims = self._embedded.embeddings.parts, self._stage.dims
        if not dims:
            return parts
        return [(first, Ragged({"vectors": part.arrays["vectors"][:, :dims]}, part.offsets)) for first, part in parts]

    def _nearest(self, vectors: Vectors, k: int) -> list[Hits]:
        stage, embedded, setup = self._stage, self._embedded, self._embedded.runtime.setup
        ranks = embedded.corpus.id_ranks()
        if not stage.dims and not stage.passages:  # nodes compare whole vectors of whole documents
            work = ProposeNearest(vectors, k, self._takes_cosine, setup.memory)
            hits = search_by_nodes(
                embedded.embeddings.shards, work, ranks, embedded.runtime.engine, embedded.query_store
            )
            if hits is not None:
                return hits
        return search_exact(
            vectors,
            self._blocks(),
            k,
            ranks,
            cosine=self._takes_cosine,
            memory=setup.memory,
            device=setup.device,
            cache=self._cache,
        )


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
