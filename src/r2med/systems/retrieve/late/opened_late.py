"""Search a corpus by late interaction or by learned term weights, with the model of a card."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager

from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Hits
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import embed_texts
from r2med.systems.retrieve.vectors.vector_retriever import EmbeddedCorpus


class OpenedLate(ABC):
    """A corpus with several vectors or weights for each document. A subclass compares what the model returns."""

    def __init__(self, embedded: EmbeddedCorpus, turn: AbstractContextManager[object]) -> None:
        self._embedded, self._turn = embedded, turn

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        embedded, texts = self._embedded, [_text(query) for query in queries]
        with self._turn:
            asked = embed_texts(texts, "query", embedded.encoder, embedded.query_store, embedded.runtime.engine)
        started = time.perf_counter()
        run = Run.ranked([query.query.id for query in queries], self._hits(asked, k), embedded.corpus)
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), embedded.embeddings.cost)

    @abstractmethod
    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        """Return the k best documents of each query."""


class OpenedTokens(OpenedLate):
    """A corpus of token vectors, compared by MaxSim."""

    def __init__(self, embedded: EmbeddedCorpus, turn: AbstractContextManager[object]) -> None:
        super().__init__(embedded, turn)
        self._cache = SearchCache()

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        embedded, setup = self._embedded, self._embedded.runtime.setup
        parts, ranks = embedded.embeddings.parts, embedded.corpus.id_ranks()
        return search_exact(asked, parts, k, ranks, memory=setup.memory, device=setup.device, cache=self._cache)


class OpenedTerms(OpenedLate):
    """A corpus of weights of terms, compared by an inverted index."""

    def __init__(self, embedded: EmbeddedCorpus, turn: AbstractContextManager[object]) -> None:
        super().__init__(embedded, turn)
        self._index = TermIndex.of(embedded.embeddings.shards, embedded.runtime.store)

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        return self._index.search(asked, k, self._embedded.corpus.id_ranks())


def _text(search: SearchQuery) -> str:
    """Return the one text that stands for a query and what was generated for it: token vectors have no mean."""
    if not search.generated:
        return search.query.text
    if search.dense_form == TEXTS_ALONE:
        return " ".join(search.generated)
    if search.dense_form == MEAN:
        return " ".join([search.query.text, *search.generated])
    return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))
