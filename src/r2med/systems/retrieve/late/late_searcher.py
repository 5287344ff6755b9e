"""Search a corpus by late interaction or by learned term weights, with the model of a card."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import assert_never

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Encoder
from r2med.models.encoders.model_cards import LateLoader
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.exact_scores import Block
from r2med.systems.retrieve.exact.exact_search import SearchCache, search_exact
from r2med.systems.retrieve.exact.text_vectors import Hits
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, Searcher, SearchQuery
from r2med.systems.retrieve.vectors.embeddings import Embeddings, embed_corpus, embed_texts, may_change


class LateSearcher(Searcher):
    """Searches one corpus."""

    def __init__(
        self,
        name: str,
        loader: LateLoader,
        dataset: Dataset,
        encoder: Encoder,
        store: Store,
        runtime: Runtime,
        turn: AbstractContextManager[object],
    ) -> None:
        self._name, self._encoder, self._runtime, self._turn = name, encoder, runtime, turn
        store = store.about(dataset.label, model=name)
        self._corpus, self._store = dataset.corpus, store
        embeddings = embed_corpus(dataset.corpus, encoder, store, runtime.engine, reuse=may_change(dataset))
        self._prepared = embeddings.cost
        self._index = _index(loader, embeddings, store)
        self._keeps: Store | None = store
        self._cache = SearchCache()

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        with self._turn:
            asked = embed_texts(
                [_text(query) for query in queries], "query", self._encoder, self._keeps, self._runtime.engine
            )
        started = time.perf_counter()
        run = Run.ranked([query.query.id for query in queries], self._hits(asked, k), self._corpus)
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), self._prepared)

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        ranks, setup = self._corpus.id_ranks(), self._runtime.setup
        if isinstance(self._index, TermIndex):
            return self._index.search(asked, k, ranks)
        return search_exact(asked, self._index, k, ranks, memory=setup.memory, device=setup.device, cache=self._cache)

    def live(self) -> LateSearcher:
        """Return one that keeps nothing of a query."""
        searcher = copy.copy(self)
        searcher._keeps = None
        return searcher


def _text(search: SearchQuery) -> str:
    """Return the one text that stands for a query and what was generated for it: token vectors have no mean."""
    if not search.generated:
        return search.query.text
    if search.dense_form == TEXTS_ALONE:
        return " ".join(search.generated)
    if search.dense_form == MEAN:
        return " ".join([search.query.text, *search.generated])
    return search.dense_form.format(query=search.query.text, text=" ".join(search.generated))


def _index(loader: LateLoader, embeddings: Embeddings, store: Store) -> Sequence[Block] | TermIndex:
    match loader:
        case "multi-vector":
            return embeddings.parts
        case "sparse":
            return TermIndex.of(embeddings.shards, store)
        case other:
            assert_never(other)
