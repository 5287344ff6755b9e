"""Pseudo-relevance feedback with RM3 and Rocchio: needs no LLM, and every other expansion should beat it.

Both methods follow Anserini. A first search finds the top documents. Their words are added to those of the query, and
the weighted words are searched. Only BM25 can search weighted words. Dense retrievers search the unchanged query.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
from pydantic import Field, field_validator, model_validator

from r2med.data import Dataset
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Retrieving, Stage, key_of
from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.expand.expansion import Expansion
from r2med.systems.retrieve.bm25 import BM25
from r2med.systems.retrieve.bm25.bm25_retriever import all_bm25
from r2med.systems.retrieve.bm25.index import open_index
from r2med.systems.retrieve.retriever import SearchQuery
from r2med.systems.retrieve.stored_search import stored_search

Weights = Mapping[str, float]

MAX_DOCUMENT_SHARE = 0.1
"""A word in more than this share of all documents is too common to be added. The value is Anserini's."""


class Feedback(Stage, kind="expand"):
    """The settings of both methods, and the conversion of documents into weighted terms."""

    word: ClassVar[re.Pattern[str]]
    """Terms of documents that can be added to a query."""

    documents: int = Field(10, ge=1, le=1000, description="number of documents to take terms from")
    terms: int = Field(10, ge=1, le=10_000, description="number of terms to add")
    by: Retrieving | None = Field(
        None, description="the BM25 of the first search; empty: the BM25 that the query is for"
    )

    @field_validator("by")
    @classmethod
    def _is_bm25(cls, value: Stage | None) -> Stage | None:
        if value is not None and not isinstance(value, BM25):
            raise ValueError(
                f"the first search must be BM25, whose index has the terms and their statistics, not {value}"
            )
        return value

    def feeding(self, retriever: Stage) -> Self:
        """Return the same feedback for a retriever. Without `by`, the first search uses the retriever's own BM25."""
        return self if self.by else self.model_copy(update={"by": next(all_bm25(retriever), BM25())})

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return the needs of the first search."""
        return [Needs(str(self), note="learns from a first search"), *self.first.needs(size, runtime)]

    @property
    def first(self) -> BM25:
        """The BM25 of the first search."""
        return self.by if isinstance(self.by, BM25) else BM25()

    @property
    def added_terms(self) -> re.Pattern[str]:
        """The terms that can be added. Plain letters are required of English terms only."""
        return self.word if self.first.language == ENGLISH else Rocchio.word

    def key(self, dataset: Dataset, runtime: Runtime) -> dict[str, Any]:
        """Return every setting that a score depends on."""
        words = {"common": MAX_DOCUMENT_SHARE, "word": self.added_terms.pattern}
        return {**self.settings(), "source": "feedback", **words, "by": key_of(self.first, dataset, runtime)}

    def expand(self, dataset: Dataset, runtime: Runtime) -> Expansion:
        """Return the queries as weighted terms. A query without results stays unchanged."""
        plain = [SearchQuery(query) for query in dataset.queries]
        searched = stored_search(self.first, dataset, plain, self.documents, runtime)
        run = searched.run
        counts: list[int] = run.found.tolist()
        vectors = _TermCounts(dataset, runtime, self.added_terms, self.first.language)
        analysed = analyser(self.first.language).terms
        queries = []
        for search, rows, scores, count in zip(plain, run.rows, run.scores, counts, strict=True):
            documents = [vectors[row] for row in rows[:count].tolist()]
            weights = self.weighted(analysed(search.query.text), documents, scores[:count].tolist())
            terms = tuple((term, weight) for term, weight in weights.items() if weight > 0)
            queries.append(SearchQuery(search.query, terms=terms) if count else search)
        bare = counts.count(0)
        notice = f"{self}: {bare} of {len(queries)} queries of {dataset.name} find no documents to take terms from"
        expansion = Expansion.of(queries, cost=searched.cost, notices=(notice,) if bare else ())
        # Not failures: no LLM was called, and such a query finds nothing in any case.
        return replace(expansion, failures=0)

    def weighted(self, query: Sequence[str], documents: Sequence[Weights], scores: Sequence[float]) -> Weights:
        """Return the terms of a query and of the documents that it finds, with their weights."""
        raise NotImplementedError(f"{type(self).__name__} has no weighted()")


class RM3(Feedback):
    """Add the frequent words of the top documents, weighted by their scores (RM3, as in Anserini)."""

    # Only RM3 requires plain letters and digits, and only of English terms.
    word: ClassVar[re.Pattern[str]] = re.compile(r"[a-z0-9]{2,20}")

    name: str = "rm3"
    alpha: float = Field(0.5, ge=0, le=1, description="weight of the query; the documents get 1 - alpha")

    def weighted(self, query: Sequence[str], documents: Sequence[Weights], scores: Sequence[float]) -> Weights:
        """Return the sum of both language models."""
        learnt: Counter[str] = Counter()
        for document, score in zip(documents, scores, strict=True):
            for term, weight in _scaled(_top(document, self.terms), sum).items():
                learnt[term] += weight * score  # type: ignore[assignment]
        words = _scaled(Counter(query), sum)
        return _added(words, self.alpha, _scaled(_top(learnt, self.terms), sum), 1 - self.alpha)


class Rocchio(Feedback):
    """Move the query vector towards the mean of the top documents (Rocchio, as in Anserini, relevant side only)."""

    word: ClassVar[re.Pattern[str]] = re.compile(r".{2,20}", re.DOTALL)

    name: str = "rocchio"
    alpha: float = Field(1.0, ge=0, le=1e6, description="weight of the query")
    beta: float = Field(0.75, ge=0, le=1e6, description="weight of the documents")

    @model_validator(mode="after")
    def _weighs_something(self) -> Self:
        if not self.alpha and not self.beta:
            raise ValueError("alpha and beta cannot both be 0")
        return self

    def weighted(self, query: Sequence[str], documents: Sequence[Weights], scores: Sequence[float]) -> Weights:
        """Return the sum of both vectors, each normalised to length 1."""
        mean: Counter[str] = Counter()
        for document in documents:
            for term, weight in _scaled(document, _length).items():
                mean[term] += weight * (1 / len(documents))  # type: ignore[assignment]
        words = _scaled(Counter(query), _length)
        return _added(words, self.alpha, _scaled(_top(mean, self.terms), _length), self.beta)


class _TermCounts(dict[int, Weights]):
    """Terms of documents by row, without terms that are too common. Each document is analysed once."""

    def __init__(self, dataset: Dataset, runtime: Runtime, word: re.Pattern[str], language: str) -> None:
        super().__init__()
        self._corpus = dataset.corpus
        self._index = open_index(dataset.corpus, runtime, language)
        self._analysed = analyser(language).terms
        self._word = word

    def __missing__(self, row: int) -> Weights:
        counts = Counter(filter(self._word.fullmatch, self._analysed(self._corpus.text(row))))
        terms = list(counts)
        _, df = self._index.lookup(pa.array(terms, pa.string()))
        rare = df <= MAX_DOCUMENT_SHARE * len(self._corpus)
        self[row] = {term: counts[term] for term, keep in zip(terms, rare, strict=True) if keep}
        return self[row]


def _top(weights: Weights, size: int) -> Weights:
    """Return the terms with the largest weights. Ties are in alphabetical order."""
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:size])


def _length(values: Sequence[float]) -> float:
    return float(np.linalg.norm(values))


def _scaled(weights: Weights, norm: Callable[[Sequence[float]], float]) -> Weights:
    """Return weights divided by their norm."""
    size = norm(list(weights.values()))
    return {term: weight / size for term, weight in weights.items()} if size > 0 else {}


def _added(query: Weights, alpha: float, documents: Weights, beta: float) -> Weights:
    """Return the weighted sum of two sets of terms, in alphabetical order."""
    terms = sorted({*query, *documents})
    return {term: alpha * query.get(term, 0.0) + beta * documents.get(term, 0.0) for term in terms}
