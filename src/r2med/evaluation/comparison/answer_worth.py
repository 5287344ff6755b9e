"""Compute from answer records what retrieval is worth: gain over no passages, share of the gap, correlation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from r2med.evaluation.comparison.one_group import of_one_group
from r2med.evaluation.comparison.retrieval_worth import (
    FEWEST_SYSTEMS,
    closed_share,
    observed_correlation,
)
from r2med.evaluation.comparison.shared_data import wanted_datasets
from r2med.evaluation.comparison.standings import run_words, with_intervals
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.intervals import difference_intervals
from r2med.evaluation.measure.run_variance import RunSpread, SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.measure.significance import SystemPairs, means
from r2med.evaluation.records.answer_views import MAIN_MEASURE, answer_measure
from r2med.evaluation.records.answer_words import CONDITIONS, READ_CONDITIONS, SEARCHED, Condition
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.records.used_labels import published_names
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.cells import Column, Estimate, Value
from r2med.foundation.pages.page import Table

ALL_DATASETS = "all datasets"

Repeats = Sequence[Record]
"""The records of all repeats of a system with its reader on a dataset."""

WORTH_NOTE = (
    "Points, with 95 % intervals over questions; from three runs on, also over runs. A difference below 0 means that "
    "the passages do harm. Share of the gap: the gain over closed book, divided by the gain of the relevant passages; "
    "it has no interval if that gain could be 0. Only questions with a value in every condition count."
)
CORRELATION_NOTE = (
    "Pearson's r of nDCG@10 and the answers across at least three systems. The noise of few questions makes it too "
    "small. Values are means over runs."
)


@dataclass(frozen=True)
class Worth:
    """What the passages of one system are worth to one reader, in points; None if it was not asked."""

    name: str
    """The system and its reader."""
    dataset: str
    questions: int
    """Number of questions with a value in every condition that was asked."""
    scores: Mapping[Condition, Estimate]
    """Condition -> mean of the measure."""
    gain: Estimate | None
    """Retrieved minus closed book, paired by question."""
    random: Estimate | None
    """Random passages minus closed book."""
    share: Estimate | None
    """The gain as a share of the gain of the relevant passages."""
    runs: int = 1
    """Number of runs on every dataset. Values are means over them."""
    varies: bool = False
    """True if another run can give other answers. With one or two runs, intervals are of the questions only."""


@dataclass(frozen=True)
class RetrievalCorrelation:
    """How retrieval and answers of one reader go together across systems."""

    reader: str
    systems: int
    questions: int
    observed: float | None


def worth(collection: RecordCollection, measure: str = MAIN_MEASURE, data: Sequence[str] = ()) -> list[Worth]:
    """Return what retrieval is worth: for each system and reader, on each dataset and over all of them."""
    name, found = answer_measure(measure), []
    for system, records in _by_name(collection, data).items():
        every = [record for repeats in records.values() for record in repeats]
        conditions = [each for each in CONDITIONS if all(name in record.answers.mean.get(each, {}) for record in every)]
        varies = any(record.varies for record in every)
        tables = {dataset: _tables(repeats, name, conditions) for dataset, repeats in records.items()}
        tables = {dataset: rows for dataset, rows in tables.items() if rows.size}
        if len(tables) > 1:
            found.append(_worth(system, ALL_DATASETS, conditions, tables, varies))
        found += [_worth(system, dataset, conditions, {dataset: rows}, varies) for dataset, rows in tables.items()]
    if not found:
        raise UserError(f"no answer record has {name}: r2med answer SYSTEM --reader LLM makes some")
    return found


def _by_name(collection: RecordCollection, data: Sequence[str]) -> dict[str, dict[str, list[Record]]]:
    """Return name -> dataset -> the records of its repeats, for datasets of one group, or those of `data`."""
    chosen = wanted_datasets(data, list(dict.fromkeys(each.record.dataset.name for each in collection)))
    wanted = [each for each in collection if each.record.dataset.name in chosen]
    datasets, _ = of_one_group(published_names(each.record for each in wanted), bool(data))
    by_name: dict[str, dict[str, list[Record]]] = {}
    for (name, dataset), kept in collection.cells.items():
        if dataset in datasets:
            by_name.setdefault(name, {})[dataset] = [each.record for each in kept.repeats]
    return by_name


def _tables(repeats: Sequence[Record], measure: str, conditions: Sequence[Condition]) -> Floats:
    """Return runs × conditions × questions in points, of the questions that have all of these values."""
    runs = [[record.answers.per_query[condition] for condition in conditions] for record in repeats]
    every = [row for rows in runs for row in rows]
    shared = [query for query in repeats[0].queries if all(measure in row.get(query, {}) for row in every)]
    return 100 * np.array([[[row[query][measure] for query in shared] for row in rows] for rows in runs])


def _means(tables: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the means of tables over their first axis, the runs."""
    return {name: table.mean(axis=0) for name, table in tables.items()}


def _spread(tables: Mapping[str, Floats], varies: bool) -> RunSpread:
    """Return what runs × rows × questions say about the chance of the runs."""
    single = {name: list(table.swapaxes(0, 1)) for name, table in tables.items()}
    return run_spread(SingleRuns(single, [varies] * next(iter(tables.values())).shape[1]))


def _difference(first: Mapping[str, Floats], second: Mapping[str, Floats], varies: bool) -> Estimate:
    """Return the difference of two conditions, each as runs × questions. The interval stays within what is possible."""
    runs = {name: np.stack([first[name], second[name]], axis=1) for name in first}
    rows, pair = _means(runs), SystemPairs(np.array([0]), np.array([1]))
    (value,) = pair.differences(means(rows)).tolist()
    low, high = np.clip(difference_intervals(rows, pair, _spread(runs, varies)), -100.0, 100.0)[:, 0].tolist()
    if np.isnan(low):  # too few questions, or all of them equal
        return Estimate(value)
    return Estimate(value, low, high)


def _worth(
    name: str, dataset: str, conditions: Sequence[Condition], tables: Mapping[str, Floats], varies: bool
) -> Worth:
    values, spread = _means(tables), _spread(tables, varies)
    scores = zip(conditions, with_intervals(values, spread=spread), strict=True)
    has = {condition: number for number, condition in enumerate(conditions)}

    def difference(first: Condition, second: Condition) -> Estimate | None:
        if first not in has or second not in has:
            return None
        one, other = ({key: table[:, has[each]] for key, table in tables.items()} for each in (first, second))
        return _difference(one, other, varies)

    ends: tuple[Condition, ...] = ("closed book", "retrieved", "relevant")
    known = all(condition in has for condition in ends)
    order = np.array([has[each] for each in ends]) if known else np.empty(0, np.intp)
    return Worth(
        name,
        dataset,
        sum(rows.shape[1] for rows in values.values()),
        {condition: score for condition, score in scores if score},
        difference("retrieved", "closed book"),
        difference("random", "closed book"),
        closed_share({key: rows[order] for key, rows in values.items()}, spread.of(order)) if known else None,
        min(len(table) for table in tables.values()),
        varies,
    )


def correlations(
    collection: RecordCollection, measure: str = MAIN_MEASURE, data: Sequence[str] = ()
) -> list[RetrievalCorrelation]:
    """Return the correlation of nDCG@10 with the answers across systems, for each reader of at least three systems."""
    groups: dict[tuple[str, int, str], list[Repeats]] = {}
    named = _by_name(collection, data)
    for name, dataset in collection.cells:
        if repeats := named.get(name, {}).get(dataset):
            answers = repeats[0].answers
            groups.setdefault((answers.reader, answers.passages, answers.form), []).append(repeats)
    return list(_correlations(groups, answer_measure(measure)))


def _correlations(
    groups: Mapping[tuple[str, int, str], Sequence[Repeats]], measure: str
) -> Iterator[RetrievalCorrelation]:
    for (reader, passages, _), of_systems in groups.items():
        systems = list(dict.fromkeys(repeats[0].system for repeats in of_systems))
        if len(systems) < FEWEST_SYSTEMS:
            continue
        first: dict[str, Floats] = {}
        second: dict[str, Floats] = {}
        for dataset in dict.fromkeys(repeats[0].dataset.name for repeats in of_systems):
            runs = {repeats[0].system: repeats for repeats in of_systems if repeats[0].dataset.name == dataset}
            if len(runs) == len(systems):
                rows = _paired([runs[system] for system in systems], measure)
                if rows.shape[2]:
                    first[dataset], second[dataset] = rows
        if first:
            shown = (
                reader
                if len({key[1] for key in groups if key[0] == reader}) == 1
                else f"{reader} · {passages} passages"
            )
            questions = sum(rows.shape[1] for rows in first.values())
            yield RetrievalCorrelation(shown, len(systems), questions, observed_correlation(first, second))


def _paired(systems: Sequence[Repeats], measure: str) -> Floats:
    """Return nDCG@10 and the measure, both as systems × questions, for the questions that all runs have.

    Values are means over the runs of a system.
    """
    every = [record for repeats in systems for record in repeats]
    answered = [record.answers.per_query.get("retrieved", {}) for record in every]
    shared = [
        query
        for query in systems[0][0].queries
        if all(
            query in record.per_query and measure in row.get(query, {})
            for record, row in zip(every, answered, strict=True)
        )
    ]

    def means_of(value: Callable[[Record, str], float]) -> list[list[float]]:
        return [[fmean(value(record, query) for record in repeats) for query in shared] for repeats in systems]

    retrieval = means_of(lambda record, query: record.per_query[query][str(HEADLINE_MEASURE)])
    answers = means_of(lambda record, query: record.answers.per_query["retrieved"][query][measure])
    return np.array([retrieval, answers]).reshape(2, len(systems), len(shared))


def worth_tables(collection: RecordCollection, measure: str = MAIN_MEASURE) -> list[Table]:
    """Return the table of what retrieval is worth and, if three systems were read, that of the correlation."""
    name = answer_measure(measure)
    of_systems = worth(collection, name)
    agents = any(SEARCHED in each.scores for each in of_systems)
    conditions = CONDITIONS if agents else READ_CONDITIONS
    any_varies = any(each.varies for each in of_systems)
    rows: list[list[Value]] = [
        [
            each.name,
            each.dataset,
            each.questions,
            *([run_words(each.runs, each.varies)] if any_varies else []),
            *(each.scores.get(condition) for condition in conditions),
            each.gain,
            each.random,
            each.share,
        ]
        for each in of_systems
    ]
    columns = (
        Column("system · reader"),
        Column("on"),
        Column("questions", "integer"),
        *([Column("runs")] if any_varies else []),
        *(Column(condition, "score", 1) for condition in conditions),
        Column("retrieved − closed book", "difference", 1),
        Column("random − closed book", "difference", 1),
        Column("share of the gap", "share", 0),
    )
    tables = [Table(columns, rows, f"What retrieval is worth: {name} × 100", WORTH_NOTE, name="worth")]
    found = correlations(collection, name)
    if found:
        lines: list[list[Value]] = [[each.reader, each.systems, each.questions, each.observed] for each in found]
        heads = (
            Column("reader"),
            Column("systems", "integer"),
            Column("questions", "integer"),
            Column("r observed", "number"),
        )
        title = f"Do better rankings give better answers? nDCG@10 and {name} across systems"
        tables.append(Table(heads, lines, title, CORRELATION_NOTE, name="worth-correlation"))
    return tables
