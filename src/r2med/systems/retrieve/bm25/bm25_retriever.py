"""BM25 retriever: the impacts of one scorer, and the search."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import Field, field_validator

from r2med.data import Dataset
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, with_nested
from r2med.foundation.store import Store, digest
from r2med.foundation.store.files import array_file, let_go
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH, search_language, search_languages
from r2med.systems.retrieve.bm25.impacts import NO_HITS, Impacts
from r2med.systems.retrieve.bm25.index import POSTINGS_KIND, VERSION, Index, Segment, open_index
from r2med.systems.retrieve.bm25.scorers import SCORERS
from r2med.systems.retrieve.retriever import Searched, SearchQuery

log = logging.getLogger("r2med")

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
        if (POSTINGS_KIND, "") in size.stored:
            return [Needs(str(self), stored=size.documents)]
        return [Needs(str(self), indexed=size.documents, seconds=size.documents / DOCUMENTS_PER_SECOND)]

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on. They are the same for every dataset and engine."""
        return {**self.settings(), "version": VERSION, "analysis": analyser(self.language).key}

    def search(self, dataset: Dataset, queries: Sequence[SearchQuery], k: int, runtime: Runtime) -> Searched:
        """Return the k best documents of each query that share a term with it."""
        index, segments = runtime.index((self, dataset.corpus.fingerprint), lambda: self._open(dataset, runtime))
        started = time.perf_counter()
        analysed = analyser(self.language).terms
        # The weight of each query term: the given weight, or else its count in the text.
        bags: list[Mapping[str, float]] = [
            dict(query.terms) or Counter(analysed(query.lexical_text)) for query in queries
        ]
        terms = pa.array(sorted(set().union(*bags)), pa.string())
        positions, df = index.lookup(terms)
        number_of = {term: number for number, term in enumerate(terms.to_pylist()) if df[number]}
        weighted = []
        for bag, query in zip(bags, queries, strict=True):
            words = sorted(bag.keys() & number_of.keys())
            numbers = np.array([number_of[word] for word in words], dtype=np.int64)
            tf: npt.NDArray[Any] = np.array(
                [bag[word] for word in words], dtype=np.float64 if query.terms else np.int64
            )
            scorer, is_weighted = SCORERS[self.scorer], bool(query.terms)
            weights = scorer.weights(tf, df[numbers], index.collection, self.k1, self.b, is_weighted)
            weighted.append((numbers, weights))
        hits, ranks = [NO_HITS] * len(queries), dataset.corpus.id_ranks()
        stays = sum(segment.nbytes for segment in segments) <= runtime.setup.memory
        for segment, here in zip(segments, positions, strict=True):
            hits = segment.search([(here[numbers], weights) for numbers, weights in weighted], hits, k, ranks)
            if not stays:  # one segment at a time is in memory
                segment.let_go()
        run = Run.ranked([query.query.id for query in queries], hits, dataset.corpus)
        return Searched(run, Cost(seconds=time.perf_counter() - started), Cost(seconds=index.seconds))

    def _open(self, dataset: Dataset, runtime: Runtime) -> tuple[Index, list[Impacts]]:
        """Return the index and the impacts, ready to be searched. They are read from the store if it has them."""
        index = open_index(dataset.corpus, runtime, self.language, SCORERS[self.scorer].counts_repeats)
        key = self.key(dataset, runtime)
        return index, [self._impacts(segment, index, key, runtime.store) for segment in index.segments]

    def _impacts(self, segment: Segment, index: Index, key: dict[str, Any], store: Store) -> Impacts:
        """Return the impact of each posting of a segment, memory-mapped."""
        documents, frequencies = segment.documents, segment.frequencies

        def build(folder: Path) -> None:
            norms = SCORERS[self.scorer].norms(segment.lengths, index.collection, self.k1, self.b)
            with array_file(folder / "impacts.npy", norms.dtype, documents.shape) as add:
                for first in range(0, len(documents), IMPACTS_AT_ONCE):
                    part = slice(first, first + IMPACTS_AT_ONCE)
                    add(frequencies[part] / (frequencies[part] + norms.take(documents[part])))
                    let_go(frequencies)
                    let_go(documents)

        artefact = store.make("bm25-impacts", digest([index.key, segment.start, key]), build)
        return Impacts(segment.start, len(segment.lengths), segment.offsets, documents, artefact.array("impacts"))


def all_bm25(retriever: Stage) -> Iterator[BM25]:
    """Yield the BM25s of a retriever, and those inside it, as in a fusion."""
    return (stage for stage in with_nested(retriever) if isinstance(stage, BM25))


def hint_at_language(retriever: Stage, dataset: Dataset) -> None:
    """Say how to search a dataset in the language of its card, if no BM25 of the retriever analyses that language.

    Scores never depend on a card silently.
    """
    analysed = {bm25.language: None for bm25 in all_bm25(retriever)}
    for code in dataset.card.languages[-1:] if dataset.card else ():
        if analysed and code not in analysed and code in search_languages():
            _hint(dataset.name, code, next(iter(analysed)))


@cache  # so that it is said once
def _hint(dataset: str, code: str, analysed: str) -> None:
    names = search_languages()[code].name, search_languages()[analysed].name
    log.warning("%s is %s, but bm25 analyses it as %s: use bm25(language=%s)", dataset, *names, code)
