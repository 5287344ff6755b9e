"""Score rankings under other assumptions about documents without a label."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from r2med.evaluation.measure.measures import HEADLINE_MEASURE
from r2med.evaluation.measure.scores import Floats, score_run

CUTOFF = HEADLINE_MEASURE.cutoff or 10

Lists = Mapping[str, list[str]]
"""Query -> documents, best first."""
Grades = Mapping[str, Mapping[str, int]]


def headline(qrels: Grades, lists: Lists) -> Floats:
    """Return nDCG@10 × 100 of every query."""
    run = {query: {d: -float(rank) for rank, d in enumerate(documents)} for query, documents in lists.items()}
    return 100 * score_run(qrels, run, [HEADLINE_MEASURE]).values[HEADLINE_MEASURE]


def judged_share(qrels: Grades, lists: Lists) -> Floats:
    """Return the percentage of the first ten documents that are judged."""
    shares = [np.mean([d in grades for d in lists[query][:CUTOFF]] or [False]) for query, grades in qrels.items()]
    return 100 * np.array(shares, dtype=np.float64)


def with_unjudged_relevant(qrels: Grades, lists: Lists) -> Grades:
    """Return the judgements with every unjudged document of the first ten as relevant. No others score higher."""
    return {query: {**dict.fromkeys(lists[query][:CUTOFF], 1), **grades} for query, grades in qrels.items()}


def condensed(qrels: Grades, lists: Lists) -> Lists:
    """Return the rankings without unjudged documents."""
    return {query: [document for document in lists[query] if document in qrels[query]] for query in qrels}


def bpref(qrels: Grades, lists: Lists) -> Floats:
    """Return bpref × 100 of every query: how rarely judged irrelevant documents rank above relevant ones."""
    values = []
    for query, grades in qrels.items():
        relevant = sum(grade > 0 for grade in grades.values())
        irrelevant = len(grades) - relevant
        above, total = 0, 0.0
        for document in lists[query]:
            grade = grades.get(document)
            if grade is not None and grade > 0:
                total += 1 - min(above, relevant) / min(relevant, irrelevant) if irrelevant else 1
            elif grade is not None:
                above += 1
        values.append(100 * total / relevant if relevant else 0.0)
    return np.array(values)
