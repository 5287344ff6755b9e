"""The mimic rate: how many of the first passages argue for another answer. Lower is better.

A passage without a label does not count, so the rate is a lower bound. The share of labelled passages comes with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import MIMIC, MIMIC_LABELLED, Measure
from r2med.evaluation.measure.scores import Scores, scores_of


def with_mimic_rate(scores: Scores, mimics: Mapping[str, Mapping[str, int]], run: Run) -> Scores:
    """Return the scores of a run with its mimic rate and the share of labelled passages, if there are labels.

    `mimics` is query id -> document id -> 1 for a passage that argues for another answer, and 0 for any other. Both are
    shares of the first ten ranks, and an empty rank counts as a passage without a label.
    """
    if not mimics:
        return scores
    labels = {query: mimics.get(query, {}) for query in scores.queries}
    labelled = {query: dict.fromkeys(grades, 1) for query, grades in labels.items()}
    first_ten = Measure("P", MIMIC.cutoff)
    rates = {
        MIMIC: scores_of(labels, run, [first_ten]).values[first_ten],
        MIMIC_LABELLED: scores_of(labelled, run, [first_ten]).values[first_ten],
    }
    return Scores(scores.queries, {**scores.values, **rates})
