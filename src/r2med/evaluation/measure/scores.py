"""Compute measures for a whole run at once, exact to pytrec_eval and to trec_eval -c up to version 9.0.8.

trec_eval 10 compares scores as doubles. For a run that was read as doubles, the values here are equal to its values.

The denominator is the number of queries in the qrels: a judged query that a run lacks counts 0, and a query without
judgements is ignored. A document with a grade of 1 or more is relevant. The gain of nDCG is the grade itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from r2med.data.runs.run import Run, as_scores
from r2med.evaluation.measure.aspect_scores import aspect_values
from r2med.evaluation.measure.measures import ASPECT_MEASURES, DEFAULT_MEASURES, Measure
from r2med.foundation.core.errors import UserError
from r2med.foundation.text.plurals import counted

if TYPE_CHECKING:
    from r2med.data.dataset import Aspects, Dataset

Floats = npt.NDArray[np.float64]

QUERIES_AT_ONCE = 1024
"""Number of queries scored together. It limits the memory, whatever the size of the run."""


class Means(dict[Measure, float]):
    """Values by measure. The key may also be a string, as in `means["nDCG@10"]`."""

    def __missing__(self, measure: object) -> float:
        known = Measure.parse(measure) if isinstance(measure, str) else measure
        if known in self and isinstance(known, Measure):
            return self[known]
        raise UserError(
            f"{known} was not computed: add it in score(qrels, run, measures=[...]) (computed: {_few(self)})"
        )


def _few(measures: Iterable[object]) -> str:
    names = list(map(str, measures))
    return ", ".join(names[:6]) + (" …" if len(names) > 6 else "")


@dataclass(frozen=True)
class Scores:
    """One value per judged query and measure."""

    queries: tuple[str, ...]
    """The ids of the judged queries."""
    values: Mapping[Measure, Floats]
    """Measure -> one value for each query."""

    @cached_property
    def mean(self) -> Means:
        """The mean over all judged queries, as in `scores.mean["nDCG@10"]`."""
        return Means({m: float(v.mean()) if len(v) else 0.0 for m, v in self.values.items()})

    def __getitem__(self, measure: Measure | str) -> float:
        """Return the mean of one measure, as in `scores["nDCG@10"]`."""
        return self.mean[Measure.parse(measure) if isinstance(measure, str) else measure]

    def __repr__(self) -> str:
        shown = [f"{measure} {value:.4f}" for measure, value in list(self.mean.items())[:3]]
        more = ", …" if len(self.mean) > 3 else ""
        return f"Scores({counted(len(self.queries), 'query', 'queries')}: {', '.join(shown)}{more})"

    def _repr_html_(self) -> str:
        rows = [(str(measure), f"{value:.4f}") for measure, value in self.mean.items()]
        from r2med.foundation.pages.page import Table

        return Table.of(("measure", "mean"), rows, f"{len(self.queries):,} judged queries")._repr_html_()

    @property
    def per_query(self) -> dict[str, Means]:
        """Query id -> measure -> value."""
        lists = {measure: values.tolist() for measure, values in self.values.items()}
        return {q: Means({m: lists[m][i] for m in self.values}) for i, q in enumerate(self.queries)}


def score_run(
    qrels: Mapping[str, Mapping[str, int]],
    run: Run | Mapping[str, Mapping[str, float]],
    measures: Sequence[Measure],
    aspects: Aspects | None = None,
    aspect_measures: Sequence[Measure] = ASPECT_MEASURES,
) -> Scores:
    """Return the scores of a run. A judged query that the run lacks counts 0. Nothing is read or checked here."""
    queries, ranks = tuple(qrels), relevant_ranks(qrels, run)
    depth = run.rows.shape[1] if isinstance(run, Run) else max(map(len, run.values()), default=0)
    # One width for all, because sums of padded rows differ in their last digit with the number of zeros.
    most = max((sum(grade > 0 for grade in grades.values()) for grades in qrels.values()), default=0)
    values: dict[Measure, list[Floats]] = {measure: [] for measure in measures}
    for start in range(0, len(queries), QUERIES_AT_ONCE):
        some = {query: qrels[query] for query in queries[start : start + QUERIES_AT_ONCE]}
        ranking = Ranking.of(some, ranks, depth, most)
        for measure in measures:
            values[measure].append(_COMPUTE[measure.family](ranking, measure.cutoff))
    known = {m: np.concatenate([np.zeros(0), *parts]) for m, parts in values.items()}
    if aspects is not None:
        known |= aspect_values(aspects, run, queries, aspect_measures)
    return Scores(queries, known)


def dataset_scores(dataset: Dataset, run: Run, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Return the scores of a run: `measures` as far as qrels give them, and those of aspects if the dataset has any."""
    parsed = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in measures]
    from_qrels = [measure for measure in parsed if measure.from_qrels]
    return score_run(dataset.qrels, run, from_qrels, aspects=dataset.aspects or None)


def relevant_ranks(
    qrels: Mapping[str, Mapping[str, int]], run: Run | Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, int]]:
    """Return query -> relevant document -> its rank, from 1, for the relevant documents in the run."""
    relevant = {query: [d for d, grade in grades.items() if grade > 0] for query, grades in qrels.items()}
    of_queries = _ranks_in_run(relevant, run) if isinstance(run, Run) else _ranks_in_mapping(relevant, run)
    return {query: ranks for query, ranks in of_queries if ranks}


def _ranks_in_run(relevant: Mapping[str, Sequence[str]], run: Run) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each query with the ranks of its relevant documents, best first."""
    rows = run.distinct()[0]
    row_of = dict(zip(run.documents.ids(rows), rows.tolist(), strict=True))
    for query, ranked in zip(run.queries, run.rows, strict=True):
        documents = {row_of[document]: document for document in relevant.get(query, ()) if document in row_of}
        places = np.flatnonzero(np.isin(ranked, list(documents))).tolist()
        yield query, {documents[int(ranked[place])]: place + 1 for place in places}


def _ranks_in_mapping(
    relevant: Mapping[str, Sequence[str]], run: Mapping[str, Mapping[str, float]]
) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each query with the ranks of its relevant documents. The other documents are counted, and not sorted."""
    for query, ranking in run.items():
        scores = as_scores(query, ranking)
        documents = [document for document in relevant.get(query, ()) if document in ranking]
        theirs = as_scores(query, {document: ranking[document] for document in documents})
        ascending = np.sort(scores)
        not_above = np.searchsorted(ascending, theirs, side="right")
        ranks = len(scores) - not_above + 1
        tied = np.flatnonzero(not_above - np.searchsorted(ascending, theirs) > 1)
        ids = np.array(list(ranking), dtype=object) if len(tied) else scores
        for number in tied.tolist():  # of equal scores, the higher id comes first
            ranks[number] += np.count_nonzero(ids[scores == theirs[number]] > documents[number])
        yield query, dict(zip(documents, ranks.tolist(), strict=True))


@dataclass(frozen=True)
class Ranking:
    """The grades that every measure is computed from, with one row per judged query."""

    grades: Floats
    """The grade of the document at each rank, or 0 if it is not judged or the rank is empty."""
    ideal: Floats
    """The grades above 0 of the qrels, descending, padded with 0."""
    relevant: Floats
    """The number of relevant documents."""

    @classmethod
    def of(
        cls, qrels: Mapping[str, Mapping[str, int]], ranks: Mapping[str, Mapping[str, int]], depth: int, most: int
    ) -> Ranking:
        """Return the grades of some queries down to a depth. `most` is the width of the ideal ranking."""
        grades, ideal = np.zeros((len(qrels), depth)), np.zeros((len(qrels), most))
        for line, (query, judged) in enumerate(qrels.items()):
            positive = sorted((grade for grade in judged.values() if grade > 0), reverse=True)
            ideal[line, : len(positive)] = positive
            for document, rank in ranks.get(query, {}).items():
                grades[line, rank - 1] = judged[document]
        return cls(grades, ideal, np.count_nonzero(ideal, axis=1).astype(np.float64))


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """Return top / bottom, or 0 for a query without relevant documents."""
    return np.divide(top, bottom, out=np.zeros_like(top), where=bottom > 0)


def _dcg(grades: Floats) -> Floats:
    return np.asarray((grades / np.log2(np.arange(2, grades.shape[1] + 2))).sum(axis=1))


def _ndcg(ranking: Ranking, cutoff: int | None) -> Floats:
    return _ratio(_dcg(ranking.grades[:, :cutoff]), _dcg(ranking.ideal[:, :cutoff]))


def _average_precision(ranking: Ranking, cutoff: int | None) -> Floats:
    relevant = ranking.grades[:, :cutoff] > 0
    precision = np.cumsum(relevant, axis=1, dtype=np.float64) / np.arange(1, relevant.shape[1] + 1)
    return _ratio((precision * relevant).sum(axis=1), ranking.relevant)


def _recall(ranking: Ranking, cutoff: int | None) -> Floats:
    return _ratio((ranking.grades[:, :cutoff] > 0).sum(axis=1, dtype=np.float64), ranking.relevant)


def _precision(ranking: Ranking, cutoff: int | None) -> Floats:
    assert cutoff is not None
    return np.asarray((ranking.grades[:, :cutoff] > 0).sum(axis=1) / cutoff)


def _reciprocal_rank(ranking: Ranking, cutoff: int | None) -> Floats:
    relevant = ranking.grades[:, :cutoff] > 0
    if not relevant.shape[1]:
        return np.zeros(len(relevant))
    return np.where(relevant.any(axis=1), 1.0 / (relevant.argmax(axis=1) + 1), 0.0)


_COMPUTE = {
    "nDCG": _ndcg,
    "MAP": _average_precision,
    "R": _recall,
    "P": _precision,
    "MRR": _reciprocal_rank,
}
