"""Read the rankings of records, and score them with judgements of any kind."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.measure import HEADLINE_MEASURE, score_run
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.collection import StoredRecord

CUTOFF = HEADLINE_MEASURE.cutoff or 10
DEPTH = 100
"""Number of ranks that are read. Lower ranks do not change a measure at 10, unless nearly all of a list is unjudged."""

Lists = Mapping[str, list[str]]
Grades = Mapping[str, Mapping[str, int]]


def ranked_lists(kept: StoredRecord, dataset: Dataset, depth: int = DEPTH) -> Lists | None:
    """Return the first documents of every judged query, best first; None if the record names no run file."""
    if (file := kept.run_file) is None:
        return None
    run = WrittenRun(file, [query.id for query in dataset.queries])
    return {query: [document for document, _ in run.top(query, depth)] for query in dataset.qrels}


def headline(qrels: Grades, lists: Lists) -> Floats:
    """Return nDCG@10 × 100 of every query."""
    run = {query: {d: -float(rank) for rank, d in enumerate(documents)} for query, documents in lists.items()}
    return 100 * score_run(qrels, run, [HEADLINE_MEASURE]).values[HEADLINE_MEASURE]


def judged_share(qrels: Grades, lists: Lists) -> Floats:
    """Return the percentage of the first ten documents that are judged."""
    shares = [np.mean([d in grades for d in lists[query][:CUTOFF]] or [False]) for query, grades in qrels.items()]
    return 100 * np.array(shares, dtype=np.float64)


def as_one(qrels: Grades, lists: Lists, copies: Mapping[str, str]) -> tuple[Grades, Lists]:
    """Return judgements and rankings in which all copies of a text are one document with its best grade and rank."""
    grades: dict[str, dict[str, int]] = {}
    for query, judged in qrels.items():
        merged = grades.setdefault(query, {})
        for document, grade in judged.items():
            first = copies.get(document, document)
            merged[first] = max(grade, merged.get(first, grade))
    return grades, {query: list(dict.fromkeys(copies.get(d, d) for d in each)) for query, each in lists.items()}
