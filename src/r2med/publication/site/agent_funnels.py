"""The data of the page Funnel: at which step each agent that answers loses relevant documents, and how sure it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from r2med.assessment.answers.answer_scores import ACCURACY, CONFIDENCE, STEP_RECALL, UNDECIDED
from r2med.assessment.answers.search_tables import calibration_of
from r2med.evaluation.comparison.standings import with_intervals
from r2med.evaluation.measure.run_variance import SingleRuns, run_spread
from r2med.evaluation.records.answer_collection import AnswerCollection
from r2med.evaluation.records.answer_record import AnswerRecord
from r2med.evaluation.records.answer_words import SEARCHED
from r2med.evaluation.records.repeated_answers import common_means
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.search_steps import SEARCH_STEPS, SearchStep
from r2med.foundation.pages.estimate import Estimate
from r2med.publication.site.leaderboard import share_data

ABOUT_STEP: Mapping[str, str] = {
    "returned": "in a result list of a search",
    "shown": "whose text was in the conversation",
    "opened": "that the agent opened",
    "cited": "that the answer cites",
    "kept": "in the list at the end",
}
"""Step -> what the page says about the documents that came so far."""


def funnels_value(
    answers: AnswerCollection, collection: RecordCollection, names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the funnel of every agent on every dataset. `names` are the datasets in the order of their numbers."""
    return [
        _funnel(each.runs, answers.name_of(each.record), collection, names)
        for each in answers
        if SEARCHED in each.record.per_query and each.record.dataset.name in names
    ]


def _funnel(
    runs: Sequence[AnswerRecord], name: str, collection: RecordCollection, names: Sequence[str]
) -> dict[str, Any]:
    record = runs[0]
    known = record.system in collection.systems
    asked = record.per_query[SEARCHED]
    return {
        "name": name,
        "system": record.system,
        "number": collection.systems.index(record.system) if known else None,
        "reader": record.reader,
        "dataset": names.index(record.dataset.name),
        "runs": len(runs),
        "questions": len(asked),
        "relevant": sum(record.queries[query].positives for query in asked),
        "steps": list(_steps(runs)),
        "accuracy": share_data(_estimate(runs, ACCURACY)),
        "undecided": fmean(sum(bool(row.get(UNDECIDED)) for row in run.per_query[SEARCHED].values()) for run in runs),
        "calibration": _calibration(runs),
        "refused": fmean(run.statuses.get(SEARCHED, {}).get("refused", 0) for run in runs),
        "searching": common_means([run.searching for run in runs]),
        "queries": [_query(runs, query) for query in asked],
    }


def _steps(runs: Sequence[AnswerRecord]) -> Iterator[dict[str, Any]]:
    """Yield each step that the agent has: the relevant documents that came so far, and those that were lost for good.

    A document that was not opened, but cited, is not lost at the step `opened`. So the losses add up to what is missing
    at the end. Numbers are means over runs.
    """
    record = runs[0]
    queries = list(record.per_query[SEARCHED])
    left = fmean(record.queries[query].positives for query in queries) * len(queries)
    came = {step: [[_came(run, query, step) for query in queries] for run in runs] for step in SEARCH_STEPS}
    steps = [step for step in SEARCH_STEPS if any(each is not None for row in came[step] for each in row)]
    for place, step in enumerate(steps):
        numbers = np.array([came[each] for each in steps[place:]], dtype=float)  # steps × runs × questions
        reached = float(np.nan_to_num(numbers).max(axis=0).sum(axis=1).mean())
        yield {
            "name": step,
            "about": ABOUT_STEP[step],
            "documents": float(np.nansum(numbers[0], axis=1).mean()),
            "lost": left - reached,
            "recall": share_data(_estimate(runs, STEP_RECALL[step])),
        }
        left = reached


def _came(record: AnswerRecord, query: str, step: SearchStep) -> int | None:
    """Return how many relevant documents of a question came as far as a step; None if it is not known."""
    recall = record.per_query[SEARCHED].get(query, {}).get(STEP_RECALL[step])
    return None if recall is None else round(recall * record.queries[query].positives)


def _estimate(runs: Sequence[AnswerRecord], measure: str) -> Estimate | None:
    """Return the mean of a measure over questions and runs, with the interval of both; None if no question has it."""
    rows = [run.per_query[SEARCHED] for run in runs]
    asked = [query for query in rows[0] if all(measure in row.get(query, {}) for row in rows)]
    if not asked:
        return None
    values = np.array([[row[query][measure] for query in asked] for row in rows])
    spread = run_spread(SingleRuns({"": [values]}, [bool(runs[0].varies)]))
    return with_intervals({"": values.mean(axis=0, keepdims=True)}, 1.0, spread)[0]


def _calibration(runs: Sequence[AnswerRecord]) -> dict[str, Any]:
    """Return what the confidence of an agent is worth. Means over several runs have no interval."""
    found = [calibration_of(run) for run in runs]
    if len(found) == 1:
        return {name: share_data(each) if isinstance(each, Estimate) else each for name, each in found[0].items()}
    plain = [
        {name: each.value if isinstance(each, Estimate) else each for name, each in of_run.items()} for of_run in found
    ]
    means = common_means([{name: each for name, each in of_run.items() if each is not None} for of_run in plain])
    estimated = {name for of_run in found for name, each in of_run.items() if isinstance(each, Estimate)}
    return {
        name: share_data(Estimate(means[name])) if name in estimated and name in means else means.get(name)
        for name in found[0]
    }


def _query(runs: Sequence[AnswerRecord], query: str) -> dict[str, Any]:
    rows = [run.per_query[SEARCHED].get(query, {}) for run in runs]
    steps = {step: [_came(run, query, step) for run in runs] for step in SEARCH_STEPS}
    decided = all(ACCURACY in row and not row.get(UNDECIDED) for row in rows)
    return {
        "id": query,
        "relevant": runs[0].queries[query].positives,
        "steps": {
            step: fmean(each for each in came if each is not None) for step, came in steps.items() if None not in came
        },
        "right": fmean(row[ACCURACY] for row in rows) if decided else None,
        "confidence": common_means(rows).get(CONFIDENCE),
    }
