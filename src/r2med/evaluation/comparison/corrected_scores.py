"""Scores as people's labels would give them: from a judge's labels for all queries and people's for a random sample."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, takewhile
from statistics import stdev
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset
from r2med.data.overlays import Overlay, random_order
from r2med.evaluation.comparison.corrected_means import CorrectedMean, ReviewedQueries, corrected_mean
from r2med.evaluation.measure import HEADLINE_MEASURE, Measure
from r2med.evaluation.measure.measures import heading
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import Integers
from r2med.evaluation.records.relabelled import relabelled
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.page import Page, Section, Table
from r2med.foundation.store import digest
from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import quoted


@dataclass(frozen=True)
class CorrectedScores:
    """The estimated scores of systems in points, and the differences of each pair."""

    measure: str
    scores: Mapping[str, CorrectedMean]
    """System -> its score, the best first."""
    differences: Mapping[tuple[str, str], CorrectedMean]
    """(better, other) -> the difference of their scores."""
    unused: Mapping[str, int] = field(default_factory=dict)
    """Dataset -> number of completely labelled queries that are not of the random sample, so that they do not count."""
    unsettled: Mapping[str, int] = field(default_factory=dict)
    """Dataset -> number of passages that as many people call relevant as not. The sample ends before the first."""
    judge_runs: int = 1
    """Number of times that the judge was asked. Its values are means over them."""
    judge_spread: Mapping[str, float] = field(default_factory=dict)
    """System -> standard deviation of its estimates from the labels of one run of the judge each; empty for one run."""

    def as_json(self) -> dict[str, Any]:
        """Return the scores and the differences as JSON values."""
        return {
            "measure": self.measure,
            "systems": [{"system": system, **asdict(each)} for system, each in self.scores.items()],
            "pairs": [{"a": a, "b": b, **asdict(each)} for (a, b), each in self.differences.items()],
            "unused": dict(self.unused),
            "unsettled": dict(self.unsettled),
            "judge_runs": self.judge_runs,
            "judge_spread": dict(self.judge_spread),
        }


def reviewed_queries(overlays: Sequence[Overlay], dataset: str) -> set[str]:
    """Return the queries of the random sample whose whole pool people labelled.

    The pool of a query are the documents that judges labelled. The sample are the first queries of the random order,
    which follows from their ids, up to the first that people did not label. Queries behind it could have been chosen by
    hand, so they do not count.
    """
    done = _labelled(overlays, dataset)
    return {query for query, _ in takewhile(lambda each: each[1], done.items())}


def _labelled(overlays: Sequence[Overlay], dataset: str) -> dict[str, bool]:
    """Return query -> True if people labelled its whole pool as a random one, in the random order of queries.

    A passage that people disagree about without a decision counts as not labelled.
    """
    unsettled = {pair for overlay in overlays for pair in overlay.unsettled(dataset)}
    labels = [label for overlay in overlays for label in overlay.of(dataset)]
    pools = _documents((label.query, label.document) for label in labels if label.judge)
    drawn = {(label.query, label.document) for label in labels if label.drawn == "random"}
    seen = _documents(drawn - unsettled)
    return {query: pools[query] <= seen.get(query, set()) for query in random_order(dataset, pools)}


def without_pool(
    overlays: Sequence[Overlay],
    dataset: str,
    queries: Sequence[str],
    reviewed: set[str],
) -> set[str]:
    """Return the queries without a pool that belong to the sample: the same share as of the queries with one.

    Nothing is to be labelled for them, so people's value is known. Without them, the sample would not be like the rest.
    """
    pooled = {label.query for overlay in overlays for label in overlay.of(dataset) if label.judge}
    others = sorted((query for query in queries if query not in pooled), key=lambda query: digest([dataset, query]))
    share = len(reviewed & set(queries)) / (len(queries) - len(others))
    return set(others[: round(share * len(others))])


def _documents(pairs: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for query, document in pairs:
        found.setdefault(query, set()).add(document)
    return found


@dataclass(frozen=True)
class ReviewedScores:
    """The points of systems on every query, by the labels of judges and by those of people."""

    systems: tuple[str, ...]
    """The systems, in the order of the rows."""
    datasets: Mapping[str, tuple[Floats, Integers, Floats]]
    """Dataset -> rows by the labels of judges, positions of reviewed queries, and rows by people's labels there. A row
    of a system without a record is NaN."""

    def mean(self, datasets: Iterable[str], system: str, less: str = "") -> CorrectedMean | None:
        """Return the estimated score of a system over datasets, or its difference from the system `less`.

        None if a record is missing, or if people labelled the pool of fewer than two queries of a dataset.
        """
        if system not in self.systems:
            return None
        rows = [self.systems.index(name) for name in (system, less) if name]

        def values(points: Floats) -> Floats:
            return np.asarray(points[rows[0]] - points[rows[1]] if less else points[rows[0]])

        parts = [
            ReviewedQueries(values(judge), reviewed, values(people))
            for judge, reviewed, people in map(self.datasets.__getitem__, datasets)
        ]
        if any(np.isnan(part.judge).any() for part in parts):
            return None
        return corrected_mean(parts, None if less else 100.0)


def reviewed_scores(
    collection: RecordCollection,
    overlays: Sequence[Overlay],
    datasets: Mapping[str, Dataset],
    measure: str = str(HEADLINE_MEASURE),
) -> ReviewedScores:
    """Return the points of systems on the datasets that overlays label, by judges and by people.

    If judges were asked several times, their points are means over these runs. So a judge that contradicts itself has a
    smaller weight after one run than after several.
    """
    runs = range(_judge_runs(overlays))
    in_runs = [[each.in_repeat(number) for each in overlays] for number in runs] if len(runs) > 1 else [overlays]
    relabelled_runs = [relabelled(collection, each, datasets, drawn=False).with_measure(measure) for each in in_runs]
    by_judge, values = relabelled_runs[0], [each.values(measure) for each in relabelled_runs]
    by_people = relabelled(collection, overlays, datasets).with_measure(measure).values(measure)
    found = {}
    for dataset, (queries, _) in values[0].items():
        judge = np.mean([each[dataset][1] for each in values], axis=0)
        name = next(known for known in datasets if dataset.startswith(f"{known}+") or dataset == known)
        sampled = reviewed_queries(overlays, name) & set(queries)
        if len(sampled) > 1:
            sampled |= without_pool(overlays, name, queries, sampled)
        reviewed = np.array([place for place, query in enumerate(queries) if query in sampled], dtype=np.intp)
        found[name] = (100 * judge, reviewed, 100 * by_people[dataset][1][:, reviewed])
    return ReviewedScores(tuple(by_judge.systems), found)


def corrected_scores(
    collection: RecordCollection,
    overlays: Sequence[Overlay],
    datasets: Mapping[str, Dataset],
    measure: str = str(HEADLINE_MEASURE),
) -> CorrectedScores:
    """Return the estimated scores of systems that have a record on every dataset of the overlays.

    Raises UserError if people labelled the whole pool of fewer than two randomly drawn queries of a dataset.
    """
    measure = str(Measure.parse(measure))
    values = reviewed_scores(collection, overlays, datasets, measure)
    unused = {
        name: sum(_labelled(overlays, name).values()) - len(reviewed_queries(overlays, name))
        for name in values.datasets
    }
    unsettled = {name: sum(len(each.unsettled(name)) for each in overlays) for name in values.datasets}
    for name, (_, reviewed, _) in values.datasets.items():
        if len(reviewed) < 2 and unsettled[name]:
            raise UserError(
                f"people disagree about {counted(unsettled[name], 'passage')} of {name} without a decision, so that "
                f"{counted(len(reviewed), 'query', 'queries')} of the random sample can be used, and an estimate needs "
                "more: settle them with r2med review serve FILE"
            )
        if len(reviewed) < 2:
            others = f" ({unused[name]:,} others are labelled, but the random order has queries before them)"
            raise UserError(
                f"people labelled the whole pool of {len(reviewed)} randomly drawn queries of {name}, and an estimate "
                f"needs more{others * bool(unused[name])}: r2med review serve FILE"
            )
    names = tuple(values.datasets)
    scores = {system: mean for system in values.systems if (mean := values.mean(names, system))}
    ranked = sorted(scores, key=lambda system: -scores[system].value)
    if not scores:
        raise UserError(
            f"no system has a record on each of {', '.join(names)}: r2med run SYSTEM --data {quoted(','.join(names))}"
        )
    pairs = {pair: mean for pair in combinations(ranked, 2) if (mean := values.mean(names, *pair))}
    unused = {name: count for name, count in unused.items() if count}
    unsettled = {name: count for name, count in unsettled.items() if count}
    spread = _judge_spread(collection, overlays, datasets, measure, ranked)
    in_order = {system: scores[system] for system in ranked}
    return CorrectedScores(measure, in_order, pairs, unused, unsettled, _judge_runs(overlays), spread)


def _judge_runs(overlays: Sequence[Overlay]) -> int:
    """Return how often judges were asked: the largest number of an overlay."""
    return max(1, *(each.repeats for each in overlays)) if overlays else 1


def _judge_spread(
    collection: RecordCollection,
    overlays: Sequence[Overlay],
    datasets: Mapping[str, Dataset],
    measure: str,
    systems: Sequence[str],
) -> dict[str, float]:
    """Return how much the estimate of each system would differ between single runs of the judge; empty for one run."""
    runs = range(_judge_runs(overlays))
    if len(runs) < 2:
        return {}
    found = [reviewed_scores(collection, [each.in_repeat(run) for each in overlays], datasets, measure) for run in runs]
    means = {system: [each.mean(tuple(each.datasets), system) for each in found] for system in systems}
    return {system: stdev(each.value for each in values if each) for system, values in means.items() if all(values)}


def estimates_table(found: CorrectedScores) -> Table:
    """Return the estimated scores with their intervals, the best first."""
    known = next(iter(found.scores.values()))
    spread = [Column("SD of the judge's runs", "number")] if found.judge_spread else []
    columns = (Column("system"), Column(found.measure, "score"), Column("weight of the judge", "number"), *spread)
    rows = [
        (system, each, round(each.weight, 2), *([found.judge_spread.get(system)] if spread else []))
        for system, each in found.scores.items()
    ]
    note = (
        f"Labels: estimated. People labelled the whole pool of {known.reviewed:,} of {known.queries:,} queries, drawn "
        "at random. They correct the labels of the judge for all queries. A weight of 0 means that "
        "only people's labels count."
    )
    if found.judge_runs > 1:
        note += (
            f" The judge was asked {found.judge_runs} times, and its values are means over them. SD is how much the "
            "estimate from one of these runs alone would differ from that of another."
        )
    if found.unused:
        note += (
            f" {sum(found.unused.values()):,} further queries are completely labelled and do not count, because a "
            "query before them in the random order is not."
        )
    if found.unsettled:
        note += (
            f" As many people say yes as no about {counted(sum(found.unsettled.values()), 'passage')}. The sample ends "
            "before the first of them, and so lacks queries that are hard to label: settle them with r2med review "
            "serve FILE."
        )
    return Table(columns, rows, note=note, name="estimates")


def estimates_page(found: CorrectedScores) -> Page:
    """Return the scores and the differences with their intervals."""
    columns = (Column("pair"), Column("difference", "difference"), Column("verdict"))
    pairs = [(f"{a} minus {b}", each, _verdict(each)) for (a, b), each in found.differences.items()]
    return Page(
        "Scores that people's labels would give",
        [
            Section(heading(found.measure), [estimates_table(found)]),
            Section("Differences", [Table(columns, pairs, name="estimate-differences")]),
        ],
        kind="estimates",
    )


def _verdict(difference: CorrectedMean) -> str:
    if difference.low is None or difference.high is None:
        return "too few reviewed queries"
    return "can be distinguished" if difference.low > 0 or difference.high < 0 else "cannot be distinguished"
