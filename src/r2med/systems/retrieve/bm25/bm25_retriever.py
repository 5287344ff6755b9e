"""BM25 retriever: the index with the impacts of one scorer, and the search."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator
from scipy.sparse._sparsetools import csc_matvec  # The loop of `csc_array @ vector`, which itself would copy columns.

from r2med.data import Dataset
from r2med.data.corpus import Corpus
from r2med.data.runs.run import Run
from r2med.data.runs.ties import best, best_positive
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.engine import cores, map_threads
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, with_nested
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import array_file, let_go
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH, search_language, search_languages
from r2med.systems.retrieve.bm25.index import VERSION, Index, Positions, open_index
from r2med.systems.retrieve.bm25.postings import Segment
from r2med.systems.retrieve.bm25.scorers import SCORERS, Floats
from r2med.systems.retrieve.retriever import Searched, SearchQuery
from r2med.systems.retrieve.stored_search import check_filled

log = logging.getLogger("r2med")

Hits = tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]
"""Rows and scores."""

IMPACTS_AT_ONCE = 1 << 18
"""Number of impacts computed at a time. They fit into the cache of a core."""


DOCUMENTS_PER_SECOND = 10_000
"""Approximate number of documents indexed per second, for plans."""


class BM25(Stage, kind="retrieve"):
    """Match words: BM25. By default the scorer of the benchmark's own code, with Lucene's English analysis.

    Tests compare words and scores with outputs of Lucene and gensim. We have not yet run it on the eight datasets.
    """

    name: str = "bm25"
    scorer: Literal["published", "lucene"] = Field(
        "published",
        description="published: the benchmark's scorer, which weights queries like documents. lucene: Lucene's scorer",
    )
    k1: float = Field(
        0.9, ge=0, le=1e6, description="saturation of repeated words: with a larger k1, repetitions count more"
    )
    b: float = Field(0.4, ge=0, le=1, description="effect of a document's length; 0: none")
    language: str = Field(
        ENGLISH, description="language of the documents, as a code of two letters, such as de; its words are stemmed"
    )

    @field_validator("language")
    @classmethod
    def _can_be_analysed(cls, code: str) -> str:
        return code if code == ENGLISH else search_language(code).code

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return how many documents would be indexed."""
        if ("bm25-postings", "") in size.stored:
            return [Needs(str(self), stored=size.documents)]
        return [Needs(str(self), indexed=size.documents, seconds=size.documents / DOCUMENTS_PER_SECOND)]

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. They are the same for every dataset and engine."""
        return {**self.settings(), "version": VERSION, "analysis": analyser(self.language).key}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query that share a term with it."""
        opened = runtime.index((self, dataset.corpus.fingerprint), lambda: self._open(dataset, runtime))
        return opened.search(queries, k)

    def _open(self, dataset: Dataset, runtime: Runtime) -> OpenedBM25:
        """Return the corpus ready to be searched. The index and the impacts are read from the store if it has them."""
        check_filled(dataset.corpus)
        for language in dataset.card.languages[-1:] if dataset.card else ():
            _hint_at_language(dataset.name, language, self.language)
        counts_repeats, memory = SCORERS[self.scorer].counts_repeats, runtime.setup.memory
        index = open_index(dataset.corpus, runtime.store, counts_repeats, runtime.engine, memory, self.language)
        key = self.key(dataset, runtime)
        impacts = [self._impacts(index, segment, runtime.store, key) for segment in index.segments]
        return OpenedBM25(self, dataset.corpus, index, impacts, memory)

    def _impacts(self, index: Index, segment: Segment, store: Store, key: dict[str, Any]) -> Floats:
        """Return the impact of each posting, memory-mapped."""

        scorer = SCORERS[self.scorer]
        frequencies, documents = segment.frequencies, segment.documents

        def build(folder: Path) -> dict[str, Any]:
            norms = scorer.norms(segment.lengths, index.collection, self.k1, self.b)

            def impacts(first: int) -> Floats:
                here = slice(first, first + IMPACTS_AT_ONCE)
                return scorer.impacts(frequencies[here], norms.take(documents[here]))

            with array_file(folder / "impacts.npy", norms.dtype, documents.shape) as add:
                for part in map_threads(impacts, range(0, len(documents), IMPACTS_AT_ONCE)):
                    add(part)
                    let_go(frequencies)
                    let_go(documents)
            return {}

        return store.make("bm25-impacts", digest([index.key, segment.start, key]), build).array("impacts")


def all_bm25(retriever: Stage) -> Iterator[BM25]:
    """Yield the BM25s of a retriever, and those inside it, as in a fusion."""
    return (each for each in with_nested(retriever) if isinstance(each, BM25))


@cache
def _hint_at_language(dataset: str, code: str, analysed: str) -> None:
    """Say once how to search a dataset in the language of its card. Scores never depend on a card silently."""
    languages = search_languages()
    if code in languages and code != analysed:
        names = languages[code].name, languages[analysed].name
        log.warning("%s is %s, but bm25 analyses it as %s: use bm25(language=%s)", dataset, *names, code)


class OpenedBM25:
    """BM25 over one corpus. Of an index larger than `memory`, one segment at a time is in memory."""

    def __init__(self, settings: BM25, corpus: Corpus, index: Index, impacts: Sequence[Floats], memory: int) -> None:
        self._settings = settings
        self._corpus = corpus
        self._index = index
        self._impacts = impacts
        # The number of a document takes half as many bytes as its impact.
        self._stays = sum(each.nbytes * 3 // 2 for each in impacts) <= memory

    def search(self, queries: Sequence[SearchQuery], k: int) -> Searched:
        """Return the k best documents of each query that share a term with it."""
        started = time.perf_counter()
        analysed = analyser(self._settings.language).terms
        bags = [_bag(query, analysed) for query in queries]
        terms = pa.array(sorted(set().union(*bags)), pa.string())
        number_of = {term: number for number, term in enumerate(terms.to_pylist())}
        positions = self._index.positions(terms)
        df = self._index.df(terms, positions)
        ranks = self._corpus.id_ranks()
        asked = []
        for bag, query in zip(bags, queries, strict=True):
            words = sorted(bag)
            numbers = np.array([number_of[word] for word in words], dtype=np.int64)
            amounts = np.array([bag[word] for word in words], dtype=np.float64 if query.terms else np.int64)
            known = df[numbers] > 0
            asked.append((numbers[known], self._weights(amounts[known], df[numbers[known]], query)))
        hits = [(np.empty(0, np.int32), np.empty(0, np.float32))] * len(queries)
        for number, where in enumerate(positions):  # One segment at a time, so that only one must be in memory.
            columns = [(where[numbers], weights) for numbers, weights in asked]
            hits = search_segment(self._index.segments[number], self._impacts[number], columns, hits, k, ranks)
            if not self._stays:
                let_go(self._index.segments[number].documents)
                let_go(self._impacts[number])
        run = Run.ranked([query.query.id for query in queries], hits, self._corpus)
        return Searched(run, Cost(seconds=time.perf_counter() - started), Cost(seconds=self._index.seconds))

    def _weights(self, amounts: npt.NDArray[Any], df: npt.NDArray[np.int64], query: SearchQuery) -> Floats:
        scorer, collection = SCORERS[self._settings.scorer], self._index.collection
        if query.terms:
            return scorer.given_weights(amounts, df, collection)
        return scorer.weights(amounts, df, collection, self._settings.k1, self._settings.b)


def search_segment(
    segment: Segment,
    impacts: Floats,
    asked: Sequence[tuple[Positions, Floats]],
    hits: Sequence[Hits],
    k: int,
    ranks: npt.NDArray[np.int32],
) -> list[Hits]:
    """Return the k best of each query's hits so far and of one segment's documents.

    `asked` are the positions of a query's terms in the segment, descending, -1 for those it does not have, and weights.
    """
    size = len(segment.lengths)

    def search(group: slice) -> list[Hits]:
        sums = np.empty(size)
        scores = np.empty(size, np.float32)
        merged = []
        for (positions, weights), (rows, kept) in zip(asked[group], hits[group], strict=True):
            here = positions >= 0
            sums.fill(0)
            add_columns(segment, impacts, positions[here], weights[here], sums)
            np.copyto(scores, sums, casting="same_kind")
            more, theirs = best_positive(scores, k, ranks[segment.start : segment.start + size])
            rows, kept = np.concatenate((rows, more + np.int32(segment.start))), np.concatenate((kept, theirs))
            chosen = best(kept, k, ranks[rows])
            merged.append((rows[chosen], kept[chosen]))
        return merged

    # Queries of a group share arrays. For a single query, starting a thread pool would take longer than the search.
    several = max(1, len(asked) // (4 * cores()))
    groups = [slice(first, first + several) for first in range(0, len(asked), several)]
    parts = map_threads(search, groups) if len(groups) > 1 else map(search, groups)
    return [hit for part in parts for hit in part]


def add_columns(segment: Segment, impacts: Floats, positions: Positions, weights: Floats, sums: Floats) -> None:
    """Add impact times weight of some terms to the sums of all documents, directly from the postings.

    The positions are descending, so the range between the end of one term and the start of the next is empty. A matrix
    with these bounds alternates between columns of terms and empty columns, and nothing is copied.
    """
    if not len(positions):
        return
    bounds = np.empty(2 * len(positions), np.int32)
    bounds[::2] = segment.offsets[positions]
    bounds[1::2] = segment.offsets[positions + 1]
    factors = np.zeros(len(bounds) - 1)
    factors[::2] = weights
    csc_matvec(len(sums), len(factors), bounds, segment.documents, impacts, factors, sums)


def _bag(search: SearchQuery, analysed: Callable[[str], list[str]]) -> Mapping[str, float]:
    """Return the weight of each query term: the given weight, or else its count in the text."""
    return dict(search.terms) if search.terms else Counter(analysed(search.lexical_text))
