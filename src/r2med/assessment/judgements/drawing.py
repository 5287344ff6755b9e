"""Choose what people label: the whole pool of random queries, and the labels that could change the order of systems.

docs/evidence.md explains the formula of the influence.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from r2med.assessment.rubrics.rubric import highest_grade
from r2med.data.dataset import Dataset
from r2med.data.overlays import Drawn, Overlay, add_labels, random_order
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.measure import HEADLINE_MEASURE, score_run
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import EQUALITY_MARGIN, SystemPairs, means, pair_variances, welch
from r2med.evaluation.records.relabelled import relabelled
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.store import digest

SAMPLE_QUERIES = 30
"""Number of random queries of each dataset. From 20 on, the estimate has an interval."""
INFLUENTIAL_DOCUMENTS = 50
"""Number of documents whose labels could change the order of systems most."""

Pair = tuple[str, str, str]
"""A dataset, a query and a document."""


@dataclass(frozen=True)
class DrawnPair:
    """A query and a document that people are asked about, and why."""

    dataset: str
    query: str
    document: str
    drawn: Drawn
    highest: int
    """The highest grade of the dataset, on whose scale the label will be."""


def drawn_pairs(
    overlay: Overlay,
    collection: RecordCollection,
    datasets: Mapping[str, Dataset],
    sample: int = SAMPLE_QUERIES,
    influential: int = INFLUENTIAL_DOCUMENTS,
) -> list[DrawnPair]:
    """Return the pools of `sample` random queries of each dataset, query by query, and then the influential documents.

    The order of random queries depends only on their ids. So all reviewers have the same order, a larger sample
    contains the smaller ones, and the first queries of an unfinished review are a random sample too. Only labels of
    judges are drawn.
    """
    highest = {name: highest_grade(dataset.qrels) for name, dataset in datasets.items()}
    found = _random_part(overlay, highest, sample)
    known = {(each.dataset, each.query, each.document) for each in found}
    ranked = influence(overlay, collection, datasets) if influential else {}
    others = [pair for pair in sorted(ranked, key=lambda pair: (-ranked[pair], pair)) if pair not in known]
    chosen = [pair for pair in others[:influential] if ranked[pair] > 0]
    return [*found, *(DrawnPair(*pair, "influence", highest[pair[0]]) for pair in chosen)]


def _random_part(overlay: Overlay, highest: Mapping[str, int], sample: int) -> list[DrawnPair]:
    """Return the pools of random queries: the first query of every dataset, then the second of every one, and so on."""
    found: list[tuple[int, list[DrawnPair]]] = []
    for dataset, grade in highest.items():
        pools = judged_pools(overlay, dataset)
        for number, query in enumerate(random_queries(overlay, dataset)[:sample]):
            ordered = sorted(pools[query], key=partial(_place, dataset, query))
            found.append((number, [DrawnPair(dataset, query, each, "random", grade) for each in ordered]))
    return [pair for _, pool in sorted(found, key=lambda each: each[0]) for pair in pool]


def judged_pools(overlay: Overlay, dataset: str) -> dict[str, set[str]]:
    """Return the documents that judges labelled: query -> documents."""
    pools: dict[str, set[str]] = {}
    for label in overlay.of(dataset):
        if label.judge:
            pools.setdefault(label.query, set()).add(label.document)
    return pools


def random_queries(overlay: Overlay, dataset: str) -> list[str]:
    """Return the queries with labels of judges, in a random order that is always the same."""
    return random_order(dataset, judged_pools(overlay, dataset))


def _place(*words: str) -> str:
    return digest(["drawn", *words])


def influence(overlay: Overlay, collection: RecordCollection, datasets: Mapping[str, Dataset]) -> dict[Pair, float]:
    """Return the influence of each label of judges on the order of systems by nDCG@10.

    It is the sum, over all pairs of systems, of the change in the probability that the first is better than the second
    if a relevant document becomes irrelevant, or an irrelevant one gets the highest grade of the dataset. It is empty
    with fewer than two systems, or without labels of judges.
    """
    labelled = {name: each for name, each in datasets.items() if judged_pools(overlay, name)}
    if not labelled:
        return {}
    again = relabelled(collection, [overlay], labelled).complete()
    values = {name: rows for name, (_, rows) in again.values(HEADLINE_MEASURE).items()}
    if len(again.systems) < 2:
        return {}
    pairs = SystemPairs.all(len(again.systems))
    variance, _ = welch(
        np.array([pair_variances(rows, pairs) for rows in values.values()]),
        np.array([rows.shape[1] for rows in values.values()], dtype=np.float64),
    )
    error = np.maximum(np.nan_to_num(np.sqrt(variance)), EQUALITY_MARGIN)  # one query alone has no variance
    difference = pairs.differences(means(values))
    found: dict[Pair, float] = {}
    for name, dataset in labelled.items():
        flips = _Flips.of(add_labels(dataset, [overlay]), judged_pools(overlay, name))
        sums = _probability_changes(pairs, difference, error, flips.changes(again) / len(values))
        found |= {(name, *pair): float(sum_) for pair, sum_ in zip(flips.pairs, sums, strict=True)}
    return found


def _probability_changes(pairs: SystemPairs, difference: Floats, error: Floats, changes: Floats) -> Floats:
    """Return the sum over pairs of systems of the change in the probability that the first is better.

    `changes` are systems × labels: the change of each score if a label is turned.
    """
    from scipy.special import ndtr

    before = np.asarray(ndtr(difference / error))[:, None]
    total = np.zeros(changes.shape[1])
    for start in range(0, changes.shape[1], _LABELS_AT_ONCE):
        part = slice(start, start + _LABELS_AT_ONCE)
        after = ndtr((difference[:, None] + pairs.differences(changes[:, part])) / error[:, None])
        total[part] = np.abs(after - before).sum(axis=0)
    return total


_LABELS_AT_ONCE = 256
"""Number of labels computed together. It limits the memory with hundreds of systems."""


@dataclass(frozen=True)
class _Flips:
    """The labels of judges for one dataset, each turned into its opposite."""

    dataset: Dataset
    """The dataset with the overlay."""
    pairs: Sequence[tuple[str, str]]
    qrels: Mapping[str, Mapping[str, int]]
    """Number of the flip, as text -> the grades of its query with one label turned."""

    @classmethod
    def of(cls, dataset: Dataset, pools: Mapping[str, set[str]]) -> _Flips:
        pairs = [(query, document) for query, documents in pools.items() for document in sorted(documents)]
        highest = highest_grade(dataset.qrels) or 1
        qrels = {}
        for number, (query, document) in enumerate(pairs):
            grades = dataset.qrels[query]
            qrels[str(number)] = {**grades, document: 0 if grades[document] > 0 else highest}
        return cls(dataset, pairs, qrels)

    def changes(self, collection: RecordCollection) -> Floats:
        """Return the change of the mean nDCG@10 of each system (rows) by each flip (columns)."""
        cut = HEADLINE_MEASURE.cutoff
        rows = []
        for system in collection.systems:
            kept = collection.cells[system, self.dataset.name]
            file = kept.run_file
            assert file is not None and cut is not None, "relabelled() has read it"
            run = WrittenRun(file, [query.id for query in self.dataset.queries])
            tops = {query: [document for document, _ in run.top(query, cut)] for query in {q for q, _ in self.pairs}}
            # Each flip is scored as a query of its own, so that the measure is computed in one place only.
            ranks = {
                str(number): {document: float(-rank) for rank, document in enumerate(tops[query])}
                for number, (query, _) in enumerate(self.pairs)
            }
            before = [kept.record.per_query[query][str(HEADLINE_MEASURE)] for query, _ in self.pairs]
            rows.append(score_run(self.qrels, ranks, [HEADLINE_MEASURE]).values[HEADLINE_MEASURE] - before)
        return np.array(rows) / len(self.dataset.qrels)
