"""Computing measures for a whole run at once, exact to trec_eval -c.

The denominator is the qrels: a judged query that a run lacks counts 0, a query without judgements is ignored.
Relevant is a grade of 1 or more; nDCG's gain is the grade itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from r2med.measure.measures import DEFAULT, Measure
from r2med.retrieve.run import NO_DOCUMENT, Run

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scores:
    """One value per judged query and measure."""

    queries: tuple[str, ...]
    values: Mapping[Measure, Floats]

    @cached_property
    def mean(self) -> dict[Measure, float]:
        """The mean over all judged queries."""
        return {m: float(v.mean()) if len(v) else 0.0 for m, v in self.values.items()}

    @property
    def per_query(self) -> dict[str, dict[Measure, float]]:
        """Query id -> measure -> value."""
        lists = {measure: values.tolist() for measure, values in self.values.items()}
        return {q: {m: lists[m][i] for m in self.values} for i, q in enumerate(self.queries)}


def score(qrels: Mapping[str, Mapping[str, int]], run: Run, measures: Sequence[Measure] = DEFAULT) -> Scores:
    """Score a run against judgements."""
    queries = tuple(qrels)
    grades, ideal, relevant = _grade(qrels, run)
    compute = {
        "nDCG": _ndcg,
        "MAP": _average_precision,
        "R": _recall,
        "P": _precision,
        "MRR": _reciprocal_rank,
    }
    ranking = Ranking(grades, ideal, relevant)
    return Scores(queries, {m: compute[m.family](ranking, m.cutoff) for m in measures})


@dataclass(frozen=True)
class Ranking:
    """What every measure is made of; a line per judged query."""

    grades: Floats
    """The grade of the document at each rank, 0 where it is not judged or there is none."""
    ideal: Floats
    """The positive grades of the qrels, descending, padded with 0."""
    relevant: Floats
    """How many documents are relevant."""

    @cached_property
    def hits(self) -> Floats:
        """How many relevant documents there are down to each rank."""
        return np.cumsum(self.grades > 0, axis=1, dtype=np.float64)


def _grade(qrels: Mapping[str, Mapping[str, int]], run: Run) -> tuple[Floats, Floats, Floats]:
    line_of = {query: line for line, query in enumerate(run.queries)}
    positive = [{d: g for d, g in documents.items() if g > 0} for documents in qrels.values()]
    grades = np.zeros((len(qrels), run.rows.shape[1]))
    ideal = np.zeros((len(qrels), max(map(len, positive), default=0)))
    for place, (query, judged) in enumerate(zip(qrels, positive, strict=True)):
        ideal[place, : len(judged)] = sorted(judged.values(), reverse=True)
        if query in line_of:
            rows = run.rows[line_of[query]]
            ids = run.documents.ids(rows[rows != NO_DOCUMENT])
            grades[place, : len(ids)] = [judged.get(document, 0) for document in ids]
    return grades, ideal, np.array([len(judged) for judged in positive], dtype=np.float64)


def _cut(values: Floats, cutoff: int | None) -> Floats:
    return values if cutoff is None else values[:, :cutoff]


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Divide, with 0 for a query that has nothing to find."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _dcg(grades: Floats) -> Floats:
    return np.asarray((grades / np.log2(np.arange(2, grades.shape[1] + 2))).sum(axis=1))


def _ndcg(ranking: Ranking, cutoff: int | None) -> Floats:
    return _ratio(_dcg(_cut(ranking.grades, cutoff)), _dcg(_cut(ranking.ideal, cutoff)))


def _average_precision(ranking: Ranking, cutoff: int | None) -> Floats:
    precision = _cut(ranking.hits, cutoff) / np.arange(1, _cut(ranking.hits, cutoff).shape[1] + 1)
    return _ratio((precision * (_cut(ranking.grades, cutoff) > 0)).sum(axis=1), ranking.relevant)


def _recall(ranking: Ranking, cutoff: int | None) -> Floats:
    return _ratio((_cut(ranking.grades, cutoff) > 0).sum(axis=1, dtype=np.float64), ranking.relevant)


def _precision(ranking: Ranking, cutoff: int | None) -> Floats:
    assert cutoff is not None
    return np.asarray((_cut(ranking.grades, cutoff) > 0).sum(axis=1) / cutoff)


def _reciprocal_rank(ranking: Ranking, cutoff: int | None) -> Floats:
    relevant = _cut(ranking.grades, cutoff) > 0
    if not relevant.shape[1]:
        return np.zeros(len(relevant))
    return np.where(relevant.any(axis=1), 1.0 / (relevant.argmax(axis=1) + 1), 0.0)
