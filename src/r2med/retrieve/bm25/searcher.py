"""BM25 as a retriever: the index with the impacts of one scorer, and the search over it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field
from scipy import sparse

from r2med.cost import Cost
from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.engine import map_threads
from r2med.errors import UserError
from r2med.retrieve.bm25.index import VERSION, Index, Segment, open_index
from r2med.retrieve.bm25.scorers import SCORERS
from r2med.retrieve.retriever import Searched, SearchQuery
from r2med.retrieve.run import Run, best, best_positive
from r2med.setup import Setup
from r2med.stages import Stage
from r2med.store import Store, about, digest
from r2med.store.files import write_array
from r2med.text import english


class BM25(Stage, kind="retrieve"):
    """Match words: BM25 over Lucene's English analysis. The defaults reproduce the benchmark's published figures."""

    name: str = "bm25"
    scorer: Literal["published", "lucene"] = Field(
        "published",
        description="published: the benchmark's own, which weighs a query like a document; lucene: Lucene's",
    )
    k1: float = Field(0.9, ge=0, le=1e6, description="how late repeated words stop to count")
    b: float = Field(0.4, ge=0, le=1, description="how much a document's length counts")

    def open(self, setup: Setup) -> BM25:
        """Return itself: it depends on nothing but its settings."""
        return self

    def describe(self, dataset: Dataset | None = None) -> dict[str, Any]:
        """Return every setting a score depends on, the same for every dataset."""
        return {**self.settings(), "version": VERSION, "analysis": "lucene-english"}

    def index(self, dataset: Dataset, store: Store) -> BM25Searcher:
        """Return a searcher; index and impacts come from the store if they are there."""
        corpus = dataset.corpus
        if not len(corpus):
            raise UserError("the corpus is empty: there is nothing to search")
        with about(dataset=dataset.name):
            index = open_index(corpus, store, SCORERS[self.scorer].counts_repeats)
            matrices = [self._matrix(index, segment, store) for segment in index.segments]
        return BM25Searcher(self, corpus, index, matrices)

    def _matrix(self, index: Index, segment: Segment, store: Store) -> sparse.csc_array:
        """Return impacts as documents × terms, column after column: the postings, memory-mapped."""

        def build(folder: Path) -> dict[str, Any]:
            lengths = segment.lengths.astype(np.int64)[segment.documents]
            settings = index.collection, self.k1, self.b
            impacts = SCORERS[self.scorer].impacts(segment.frequencies.astype(np.int64), lengths, *settings)
            write_array(folder / "impacts.npy", impacts)
            return {}

        artefact = store.make("bm25-impacts", digest([index.key, segment.start, self.describe()]), build)
        shape = (len(segment.lengths), len(segment.terms))
        return sparse.csc_array((artefact.array("impacts"), segment.documents, segment.offsets), shape=shape)


class BM25Searcher:
    """Searches one corpus."""

    def __init__(self, settings: BM25, corpus: Corpus, index: Index, matrices: Sequence[sparse.csc_array]) -> None:
        self._settings = settings
        self._corpus = corpus
        self._index = index
        self._matrices = matrices

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query that share a term with it."""
        if k < 1:
            raise UserError(f"k must be at least 1, not {k}")
        started = time.perf_counter()
        bags = [_bag(query) for query in queries]
        terms = pa.array(sorted(set().union(*bags)), pa.string())
        number_of = {term: number for number, term in enumerate(terms.to_pylist())}
        positions = self._index.positions(terms)
        df = self._index.df(terms, positions)
        ranks = self._corpus.id_ranks()

        def search_one(index: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
            bag = bags[index]
            numbers = np.array(sorted(number_of[term] for term in bag), dtype=np.int64)
            numbers = numbers[df[numbers] > 0] if len(numbers) else numbers
            weights = self._weights([bag[terms[int(n)].as_py()] for n in numbers], df[numbers], queries[index])
            parts = [
                self._search_segment(number, where[numbers], weights, k, ranks)
                for number, where in enumerate(positions)
            ]
            rows = np.concatenate([rows for rows, _ in parts])
            scores = np.concatenate([scores for _, scores in parts])
            kept = best(scores, k, ranks[rows])
            return rows[kept], scores[kept]

        several = len(bags) > 1  # for one, a pool of threads would take longer to start than the search
        hits = list(map_threads(search_one, range(len(bags))) if several else map(search_one, range(len(bags))))
        run = Run.ranked([query.query.id for query in queries], hits, self._corpus)
        return Searched(run, Cost(seconds=time.perf_counter() - started), Cost(seconds=self._index.seconds))

    def live(self) -> BM25Searcher:
        """Return one that is quick with queries that come one by one."""
        return BM25Searcher(self._settings, self._corpus, self._index.sorted(), self._matrices)

    def _weights(
        self, amounts: Sequence[float], df: npt.NDArray[np.int64], query: SearchQuery
    ) -> npt.NDArray[np.float64]:
        scorer, collection = SCORERS[self._settings.scorer], self._index.collection
        if query.terms:
            return scorer.given_weights(np.array(amounts, dtype=np.float64), df, collection)
        return scorer.weights(np.array(amounts, dtype=np.int64), df, collection, self._settings.k1, self._settings.b)

    def _search_segment(
        self,
        number: int,
        positions: npt.NDArray[np.int64],
        weights: npt.NDArray[np.float64],
        k: int,
        ranks: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]:
        matrix, start = self._matrices[number], self._index.segments[number].start
        here = positions >= 0
        scores = (matrix[:, positions[here]] @ weights[here]).astype(np.float32)
        rows, kept = best_positive(scores, k, ranks[start : start + len(scores)])
        return rows + np.int32(start), kept


def _bag(search: SearchQuery) -> Mapping[str, float]:
    """Return how much of each index term is searched: its weight where terms were given, else its count in the text."""
    return dict(search.terms) if search.terms else Counter(english(search.lexical_text))
