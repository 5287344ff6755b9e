"""Search a corpus by late interaction or by learned term weights, with the model of a card."""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import assert_never

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost, total
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Artefact, Store, about
from r2med.models.encoders.devices import gpu_of
from r2med.models.encoders.model_cards import LateLoader
from r2med.models.encoders.ragged import Ragged, RaggedEncoder
from r2med.systems.retrieve.late.maxsim import Hits, TokenIndex, search_maxsim
from r2med.systems.retrieve.late.ragged_shards import encode_corpus, encode_texts, opened
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.retriever import MEAN, TEXTS_ALONE, Searched, SearchQuery


class LateSearcher:
    """Searches one corpus."""

    def __init__(
        self,
        name: str,
        loader: LateLoader,
        dataset: Dataset,
        encoder: RaggedEncoder,
        store: Store,
        runtime: Runtime,
        turn: AbstractContextManager[object],
    ) -> None:
        self._name, self._encoder, self._runtime, self._turn = name, encoder, runtime, turn
        self._corpus, self._store = dataset.corpus, store
        with about(dataset=dataset.label, model=name):
            shards = encode_corpus(dataset.corpus, encoder, store, runtime.engine)
            self._prepared = total(Cost.from_dict(shard.meta["cost"]) for shard in shards)
            self._index = _index(loader, shards, store)
        self._keeps: Store | None = store

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        with self._turn, about(model=self._name):
            asked = encode_texts([_text(query) for query in queries], "query", self._encoder, self._keeps)
        started = time.perf_counter()
        run = Run.ranked([query.query.id for query in queries], self._hits(asked, k), self._corpus)
        return Searched(run, asked.cost + Cost(seconds=time.perf_counter() - started), self._prepared)

    def _hits(self, asked: Ragged, k: int) -> list[Hits]:
        ranks, setup = self._corpus.id_ranks(), self._runtime.setup
        if isinstance(self._index, TermIndex):
            return self._index.search(asked, k, ranks)
        queries = [asked.rows("vectors", number) for number in range(len(asked))]
        return search_maxsim(queries, self._index, k, ranks, memory=setup.memory, gpu=gpu_of(setup.device))

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


def _index(loader: LateLoader, shards: Sequence[Artefact], store: Store) -> TokenIndex | TermIndex:
    match loader:
        case "multi-vector":
            return TokenIndex([(shard.meta["start"], opened(shard)) for shard in shards])
        case "sparse":
            return TermIndex.of(shards, store)
        case other:
            assert_never(other)
