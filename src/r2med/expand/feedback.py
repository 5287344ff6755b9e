"""Pseudo-relevance feedback without an LLM, RM3 and Rocchio: the free baseline every expansion should beat.

Both as Anserini has them: the words of the top documents of a first search join the query's, with weights, and the
weighted words are searched. Only retrievers that match words can do that; dense ones search the query as it came.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset
from r2med.errors import UserError, nearest
from r2med.expand.contracts import Expansion
from r2med.retrieve.bm25 import BM25
from r2med.retrieve.bm25.index import open_index
from r2med.retrieve.cached import cached_search
from r2med.retrieve.retriever import SearchQuery
from r2med.spec import Call
from r2med.store import Store
from r2med.text import english

Weights = Mapping[str, float]

COMMON = 0.1
"""A word in more than this share of all documents says nothing about any of them; Anserini's figure."""

_WORD = re.compile(r"[a-z0-9]{2,20}")


@dataclass(frozen=True)
class Model:
    """How one method adds up documents."""

    alpha: float
    """Weight of the original query."""
    beta: float
    """Weight of the documents."""
    norm: Callable[[Sequence[float]], float]
    """What each document and each side of the sum is scaled to 1 by."""
    by_score: bool
    """Whether documents count by their score; else all alike."""
    prunes_documents: bool
    """Whether a document is cut to its most frequent words before it is scaled."""


METHODS = {
    "rm3": Model(0.5, 0.5, norm=sum, by_score=True, prunes_documents=True),
    "rocchio": Model(
        1.0, 0.75, norm=lambda values: float(np.linalg.norm(values)), by_score=False, prunes_documents=False
    ),
}


@dataclass(frozen=True)
class Feedback:
    """One method's settings. RM3's beta is what alpha leaves of 1 unless it is given."""

    method: str = "rm3"
    documents: int = 10
    terms: int = 10
    alpha: float | None = None
    beta: float | None = None
    search: BM25 = BM25()  # noqa: RUF009 - a frozen value

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise UserError(f"no feedback {self.method!r}{nearest(self.method, METHODS)}: {', '.join(METHODS)}")
        for name, value in (("documents", self.documents), ("terms", self.terms)):
            if value < 1:
                raise UserError(f"{self.method}: {name} must be 1 or more, not {value}")
        most = 1.0 if self.method == "rm3" and self.beta is None else float("inf")
        if not all(0 <= weight < float("inf") for weight in self.weights) or self.weights[0] > most:
            what = "alpha must lie between 0 and 1" if most == 1 else "alpha and beta must be 0 or more"
            raise UserError(f"{self.method}: {what}, not {_given(self.alpha, self.beta)}")
        if not any(self.weights):
            raise UserError(f"{self.method}: alpha and beta cannot both be 0")

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of query and documents."""
        model = METHODS[self.method]
        alpha = model.alpha if self.alpha is None else self.alpha
        left = 1 - alpha if self.method == "rm3" else model.beta
        return alpha, left if self.beta is None else self.beta

    @property
    def name(self) -> str:
        """What one types to get it."""
        plain = Feedback(self.method)
        written = [("documents", self.documents, plain.documents), ("terms", self.terms, plain.terms)]
        changed = [(name, str(value)) for name, value, default in written if value != default]
        given = [("alpha", self.alpha), ("beta", self.beta)]
        changed += [(name, str(float(weight))) for name, weight in given if weight is not None]
        if self.search != plain.search:
            changed.append(("by", str(self.search)))
        return str(Call(self.method, (), tuple(changed)))

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on."""
        alpha, beta = self.weights
        return {
            "expansion": self.method,
            "source": "feedback",
            "documents": self.documents,
            "terms": self.terms,
            "alpha": float(alpha),
            "beta": float(beta),
            "common": COMMON,
            "search": self.search.describe(),
        }

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Return the queries as weighted terms; one that finds nothing has nothing to learn from and stays itself."""
        plain = [SearchQuery(query) for query in dataset.queries]
        run = cached_search(self.search, dataset, plain, self.documents, store).run
        found: list[int] = run.found.tolist()
        vectors = _Documents(dataset.corpus, store)
        queries = []
        for search, rows, scores, count in zip(plain, run.rows, run.scores, found, strict=True):
            documents = [vectors[row] for row in rows[:count].tolist()]
            terms = self._terms(search.query.text, documents, scores[:count].tolist())
            queries.append(SearchQuery(search.query, terms=terms) if count else search)
        bare = found.count(0)
        notice = f"{self.name}: {bare} of {len(queries)} queries of {dataset.name} find nothing to learn from"
        # No failures: nothing was asked of anybody, and such a query finds nothing in any case.
        return replace(Expansion.of(queries, notices=[notice] if bare else ()), failures=0)

    def _terms(
        self, query: str, documents: Sequence[Weights], scores: Sequence[float]
    ) -> tuple[tuple[str, float], ...]:
        model, (alpha, beta) = METHODS[self.method], self.weights
        total: Counter[str] = Counter()
        for document, score in zip(documents, scores, strict=True):
            kept = _top(document, self.terms) if model.prunes_documents else document
            for term, weight in _scaled(kept, model).items():
                total[term] += weight * (score if model.by_score else 1 / len(documents))  # type: ignore[assignment]
        learnt = _scaled(_top(total, self.terms), model)
        asked = _scaled(Counter(english(query)), model)
        summed = {t: alpha * asked.get(t, 0.0) + beta * learnt.get(t, 0.0) for t in sorted({*asked, *learnt})}
        return tuple((term, weight) for term, weight in summed.items() if weight > 0)


class _Documents:
    """Term counts of documents by row, without words that are too common or no words; each is analysed once."""

    def __init__(self, corpus: Corpus, store: Store) -> None:
        self._corpus, self._index = corpus, open_index(corpus, store)
        self._known: dict[int, Weights] = {}

    def __getitem__(self, row: int) -> Weights:
        if row not in self._known:
            counts = Counter(filter(_WORD.fullmatch, english(self._corpus.text(row))))
            terms = list(counts)
            df = self._index.df(pa.array(terms, pa.string()))
            rare = df <= COMMON * len(self._corpus)
            self._known[row] = {term: counts[term] for term, keep in zip(terms, rare, strict=True) if keep}
        return self._known[row]


def _given(*weights: float | None) -> str:
    return " and ".join(f"{weight:g}" for weight in weights if weight is not None)


def _top(weights: Weights, size: int) -> Weights:
    """Return the heaviest terms, ties in the order of the alphabet."""
    return dict(sorted(weights.items(), key=lambda item: (-item[1], item[0]))[:size])


def _scaled(weights: Weights, model: Model) -> Weights:
    norm = model.norm(list(weights.values()))
    return {term: weight / norm for term, weight in weights.items()} if norm > 0 else {}
