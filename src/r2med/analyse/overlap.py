"""How many words queries share with their gold documents, by BM25's analysis: what needs no reasoning to be found."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from r2med.data.dataset import Dataset
from r2med.measure.scores import Floats
from r2med.text.english import english


@dataclass(frozen=True)
class Overlap:
    """Shared terms of pairs of a query and a document; a value for each pair."""

    jaccard: Floats
    """Terms that both have, of the terms that either has."""
    coverage: Floats
    """Terms of the query that the document has."""


def gold_overlap(dataset: Dataset) -> Overlap:
    """Return the overlap of every query with each of its relevant documents."""
    return _overlap(dataset, shift=0)


def chance_overlap(dataset: Dataset) -> Overlap:
    """Return the overlap of every query with the relevant documents of the next one: what the subject alone brings."""
    return _overlap(dataset, shift=1)


def _overlap(dataset: Dataset, shift: int) -> Overlap:
    judged = [query for query in dataset.queries if query.id in dataset.qrels]
    pairs = [
        (number, document)
        for number in range(len(judged))
        for document, grade in dataset.qrels[judged[(number + shift) % len(judged)].id].items()
        if grade > 0
    ]
    rows = dataset.corpus.rows([document for _, document in pairs])
    known = rows >= 0  # qrels may name what the corpus lacks
    asked = [set(english(query.text)) for query in judged]
    askers = [asked[number] for (number, _), there in zip(pairs, known, strict=True) if there]
    shares = []
    for terms, text in zip(askers, dataset.corpus.texts(rows[known]), strict=True):
        told = set(english(text))
        shared = len(terms & told)
        shares.append((shared / max(1, len(terms | told)), shared / max(1, len(terms))))
    jaccard, coverage = np.array(shares, dtype=np.float64).reshape(-1, 2).T
    return Overlap(jaccard, coverage)
