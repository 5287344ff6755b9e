"""Search a corpus by late interaction or by learned term weights, with the model of a card."""

from __future__ import annotations

import copy
import time
from abc import abstractmethod
from collections.abc import Sequence

from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Hits
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import embed_texts
from r2med.systems.retrieve.vectors.vector_retriever import EmbeddedCorpus, VectorRetriever


class LateSearcher(Searcher):
    """Searches one corpus. A subclass compares what the model returns."""

    def __init__(self, retriever: VectorRetriever, embedded: EmbeddedCorpus) -> None:
        self._runtime = retriever.runtime
        self._corpus, self._encoder, self._prepared = embedded.corpus, embedded.encoder, embedded.embeddings.cost
        self._store: Store | None = embedded.store
        self._turn = retriever.turn(embedded.encoder)

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        with self._turn:
            asked = embed_texts(
                [_text(query) for query in queries], "query", self._encoder, self._store, self._runtime.engine
            )
        started = time.perf_counter()
        run = Run.ranked([query.query.id for query in queries], self._hits(asked, k), self._corpus)
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), self._prepared)

    @abstractmethod
    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        """Return the k best documents of each query."""

    def live(self) -> LateSearcher:
        """Return one that keeps nothing of a query."""
        searcher = copy.copy(self)
        searcher._store = None
        return searcher


class TokenSearcher(LateSearcher):
    """Compares token vectors by MaxSim."""

    def __init__(self, retriever: VectorRetriever, embedded: EmbeddedCorpus) -> None:
        super().__init__(retriever, embedded)
        self._parts, self._cache = embedded.embeddings.parts, SearchCache()

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        setup, ranks = self._runtime.setup, self._corpus.id_ranks()
        return search_exact(asked, self._parts, k, ranks, memory=setup.memory, device=setup.device, cache=self._cache)


class TermSearcher(LateSearcher):
    """Compares weights of terms by an inverted index."""

    def __init__(self, retriever: VectorRetriever, embedded: EmbeddedCorpus) -> None:
        super().__init__(retriever, embedded)
        self._index = TermIndex.of(embedded.embeddings.shards, embedded.store)

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        return self._index.search(asked, k, self._corpus.id_ranks())


def _text(search: SearchQuery) -> str:
    """Return the one text that stands for a query and what was generated for it: token vectors have no mean."""
    if not search.generated:
        return search.query.text
    if search.dense_form == TEXTS_ALONE:
        return " ".join(search.generated)
    if search.dense_form == MEAN:
        return " ".join([search.query.text, *search.generated])
    return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))
