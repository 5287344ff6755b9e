"""The data of the page Answers: each system with each reader, its scores, statuses and grades, judge and cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from r2med.evaluation.comparison.answer_worth import ALL_DATASETS, Worth, correlations, worth
from r2med.evaluation.comparison.standings import run_words, with_intervals
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.answer_facts import JudgeFacts
from r2med.evaluation.records.answer_views import RETRIEVED, answering_cost
from r2med.evaluation.records.answer_words import CONDITIONS, Condition
from r2med.evaluation.records.collection import checked, named_apart
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.foundation.core.cost import total
from r2med.foundation.core.errors import UserError
from r2med.publication.leaderboard.answer_verification import unverified
from r2med.publication.site.answer_labels import MEASURES
from r2med.publication.site.board_sets import dataset_sets
from r2med.publication.site.leaderboard import known_score, share_data

MAX_NOTICES = 20
NOTICE_SHOWN = 500
"""Number of characters of a notice that are shown."""


def answers_value(answers: RecordCollection, collection: RecordCollection, names: Sequence[str]) -> list[Any]:
    """Return the rows of each group of datasets with several answered ones, then those of each dataset.

    A pair of system and reader is in the rows of a group only if it has a record on each of them.
    """
    answered = {each.record.dataset.name for each in answers}
    record_on = {kept.record.dataset.name: kept.record for kept in collection}
    groups = {
        group: datasets
        for group, members in dataset_sets(names, record_on).items()
        if len(datasets := [name for name in members if name in answered]) > 1
    }
    views = {**groups, **{name: [name] for name in names if name in answered}}
    return [_view(name, answers, datasets, collection, names) for name, datasets in views.items()]


def _view(
    name: str, answers: RecordCollection, datasets: Sequence[str], collection: RecordCollection, names: Sequence[str]
) -> dict[str, Any]:
    kept = checked(named_apart(answers.on(datasets).runs_of_all))
    return {
        "name": name,
        "datasets": [names.index(dataset) for dataset in datasets],
        "rows": list(_rows(kept, datasets, _worths(kept, datasets), collection)),
        "correlations": [
            {
                "reader": each.reader,
                "systems": each.systems,
                "questions": each.questions,
                "observed": each.observed,
            }
            for each in correlations(kept, data=datasets)
        ],
    }


def _worths(kept: RecordCollection, datasets: Sequence[str]) -> dict[str, Worth]:
    """Return system and reader -> what retrieval is worth over all of the datasets. Empty without any accuracy."""
    on = ALL_DATASETS if len(datasets) > 1 else datasets[0]
    try:
        return {each.name: each for each in worth(kept, data=datasets) if each.dataset == on}
    except UserError:  # it was not decided which answers are right
        return {}


def _rows(
    kept: RecordCollection, datasets: Sequence[str], worths: Mapping[str, Worth], collection: RecordCollection
) -> Iterator[dict[str, Any]]:
    most: dict[str, int] = {}
    for each in (each for each in kept if not each.unverified):  # what is not verified pushes no other row down
        most[each.record.dataset.name] = max(most.get(each.record.dataset.name, 0), len(each.record.queries))
    for name in kept.systems:
        sources = [each for (system, _), each in kept.cells.items() if system == name]
        records = {each.record.dataset.name: each.record for each in sources}
        if len(records) < len(datasets):
            continue
        first = next(iter(records.values()))
        value = worths.get(name)
        yield {
            "name": name,
            "system": first.system,
            "number": collection.systems.index(first.system) if first.system in collection.systems else None,
            "reader": first.answers.reader,
            "passages": first.answers.passages,
            "questions": sum(len(record.queries) for record in records.values()),
            "asked": sum(most.values()),
            "runs": _runs(sources),
            "scores": {condition: _scores(sources, condition) for condition in CONDITIONS},
            "gain": known_score(value.gain) if value else None,
            "share": share_data(value.share) if value else None,
            "statuses": {
                condition: _counts(record.answers.statuses.get(condition, {}) for record in records.values())
                for condition in CONDITIONS
            },
            "grades": {
                condition: _counts(record.answers.grades.get(condition, {}) for record in records.values())
                for condition in CONDITIONS
            },
            "cost": _cost(records.values(), RETRIEVED),
            "costs": {condition: _cost(records.values(), condition) for condition in CONDITIONS},
            "judging": _judging(records.values()),
            "judge": _judge([record.answers.judge for record in records.values() if record.answers.judge]),
            "notices": list(
                dict.fromkeys(notice[:NOTICE_SHOWN] for record in records.values() for notice in record.answers.notices)
            )[:MAX_NOTICES],
            **_submitted([each for each in sources if each.is_entry]),
        }


def _runs(sources: Sequence[StoredRecord]) -> str:
    """Return in words how often a system was read."""
    return run_words(min(len(each.repeats) for each in sources), any(each.record.varies for each in sources))


def _submitted(sources: Sequence[StoredRecord]) -> dict[str, Any]:
    """Return the entries of a row, and what `r2med verify` cannot compute again. Nothing for a row made here."""
    if not sources:
        return {}
    parts = [part for each in sources for part in unverified(each.record)]
    entries = ", ".join(dict.fromkeys(each.entry for each in sources))
    left = list(dict.fromkeys(part[:NOTICE_SHOWN] for part in parts))[:MAX_NOTICES]
    return {
        "entry": entries,
        "unverified": left,
        "no_verdict": next((each.unverified[:NOTICE_SHOWN] for each in sources if each.unverified), ""),
    }


def _scores(sources: Sequence[StoredRecord], condition: Condition) -> dict[str, Any]:
    """Return measure -> mean over the questions that have a value, with its interval over questions and runs."""
    scores = {}
    varies = any(each.record.varies for each in sources)
    runs_of = {each.record.dataset.name: [run.record for run in each.repeats] for each in sources}
    for measure in (each.name for each in MEASURES):
        asked = {name: _asked(runs, condition, measure) for name, runs in runs_of.items()}
        if all(asked.values()):
            points = {name: _points(runs, condition, measure, asked[name]) for name, runs in runs_of.items()}
            means = {name: rows.mean(axis=0, keepdims=True) for name, rows in points.items()}
            spread = run_spread(SingleRuns({name: [rows] for name, rows in points.items()}, [varies]))
            scores[measure] = known_score(with_intervals(means, spread=spread)[0])
    return scores


def _asked(runs: Sequence[Record], condition: Condition, measure: str) -> list[str]:
    """Return the questions that have a value of a measure in every run."""
    rows = [record.answers.per_query.get(condition, {}) for record in runs]
    return [query for query in rows[0] if all(measure in row.get(query, {}) for row in rows)]


def _points(runs: Sequence[Record], condition: Condition, measure: str, ids: Sequence[str]) -> Floats:
    """Return runs × questions in points."""
    rows = [[record.answers.per_query[condition][query][measure] for query in ids] for record in runs]
    return 100 * np.array(rows)


def _counts(parts: Iterable[Mapping[Any, int]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for part in parts:
        for word, count in part.items():
            counts[word] = counts.get(word, 0) + count
    return counts


def _judge(judges: Sequence[JudgeFacts]) -> dict[str, Any] | None:
    if not judges:
        return None
    controls = [pair for each in judges for pair in each.controls.values()]
    return {
        "names": list(dict.fromkeys(each.judge for each in judges)),
        "agreed": sum(each.agreed for each in judges),
        "both": sum(each.both for each in judges),
        "controls": {"right": sum(right for right, _ in controls), "asked": sum(asked for _, asked in controls)},
        "own_family": any(each.own_family for each in judges),
        "trust": next((each.trust for each in judges if each.trust), ""),
    }


def _cost(records: Collection[Record], condition: Condition) -> dict[str, float | None] | None:
    """Return the mean cost of an answer in a condition: the reader, and the search of retrieved passages.

    Unknown dollars are None. None if a record does not have this condition, or not its cost.
    """
    costs = [answering_cost(record, condition) for record in records]
    known = [cost for cost in costs if cost is not None]
    if len(known) < len(costs):
        return None
    spent, queries = total(known), max(1, sum(record.dataset.queries for record in records))
    return {
        "dollars": None if spent.unpriced else spent.dollars / queries,
        "seconds": spent.seconds / queries,
        "tokens": spent.llm_tokens / queries,
    }


def _judging(records: Collection[Record]) -> float | None:
    """Return the mean dollars of judging an answer, over all conditions; None if they are not known."""
    given = sum(
        count for record in records for statuses in record.answers.statuses.values() for count in statuses.values()
    )
    judging = total(record.cost_of("judge") for record in records)
    return None if judging.unpriced else judging.dollars / max(1, given)
