"""Choose the passages that a reader reads: none, those of a system, the labelled ones, or random ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.data.dataset import Dataset, Query
from r2med.models.llm.costs import approximate_tokens
from r2med.models.prompts.fitting import start_of

DEPTH = 5
"""Number of passages that a reader reads."""

_DRAWN_AT_ONCE = 64


@dataclass(frozen=True)
class ReadPassages:
    """Documents in the order in which they are shown."""

    documents: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """About how many tokens the texts have."""
        return sum(map(approximate_tokens, self.texts))

    def first(self, count: int) -> ReadPassages:
        """Return the first passages."""
        return ReadPassages(self.documents[:count], self.texts[:count])


def asked_queries(dataset: Dataset, limit: int = 0) -> list[Query]:
    """Return the judged queries with a reference answer; with a limit, the first of them."""
    asked = [query for query in dataset.queries if query.answer and query.id in dataset.qrels]
    return asked[: limit or None]


def passages_of(dataset: Dataset, documents: Sequence[str]) -> ReadPassages:
    """Return the passages with these ids. Unknown ids are left out."""
    rows = dataset.corpus.rows(list(documents)).tolist()
    known = [(document, row) for document, row in zip(documents, rows, strict=True) if row >= 0]
    texts = dataset.corpus.texts([row for _, row in known])
    return ReadPassages(tuple(document for document, _ in known), tuple(texts))


def relevant_passages(dataset: Dataset, query: Query, count: int) -> ReadPassages:
    """Return the labelled passages with the highest grades, at most `count`, so that no condition reads more."""
    grades = dataset.qrels[query.id]
    relevant = sorted((document for document, grade in grades.items() if grade > 0), key=lambda d: (-grades[d], d))
    return passages_of(dataset, relevant[:count])


def random_passages(dataset: Dataset, query: Query, tokens: int) -> ReadPassages:
    """Return random passages that together have this number of tokens. None of them is relevant to the query."""
    documents, texts, room = [], [], tokens
    for row in _drawn_rows(dataset, query):
        if room <= 0:
            break
        whole = dataset.corpus.text(row)
        if not whole.strip():
            continue
        text = start_of(whole, room)
        room -= approximate_tokens(text)
        if not text:
            break
        documents.append(dataset.corpus.id(row))
        texts.append(text)
    return ReadPassages(tuple(documents), tuple(texts))


def _drawn_rows(dataset: Dataset, query: Query) -> Iterator[int]:
    """Yield distinct rows in an order that only the query and the size of the corpus determine."""
    size = len(dataset.corpus)
    grades = dataset.qrels.get(query.id, {})
    barred = {document for document, grade in grades.items() if grade > 0} | set(query.excluded)
    out = set(dataset.corpus.rows(sorted(barred)).tolist()) - {-1}
    random = np.random.default_rng([*query.id.encode(), size])
    while len(out) < size:
        for row in random.integers(size, size=_DRAWN_AT_ONCE).tolist():
            if row not in out:
                out.add(row)
                yield row


def retrieved_passages(dataset: Dataset, query: Query, lists: Mapping[str, Sequence[str]], count: int) -> ReadPassages:
    """Return the first passages of a ranking: query -> documents, best first."""
    return passages_of(dataset, lists.get(query.id, ())[:count])
