"""All measures of a run on a dataset: those of the qrels, and those of further labels that the dataset has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import DEFAULT_MEASURES, MIMIC, MIMIC_LABELLED, Measure
from r2med.evaluation.measure.scores import Scores, score_run


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
        MIMIC: score_run(labels, run, [first_ten]).values[first_ten],
        MIMIC_LABELLED: score_run(labelled, run, [first_ten]).values[first_ten],
    }
    return Scores(scores.queries, {**scores.values, **rates})


def dataset_scores(dataset: Dataset, run: Run, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Return the scores of a run: `measures` as far as qrels give them, and all that the dataset's labels allow."""
    parsed = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in measures]
    scores = score_run(
        dataset.qrels, run, [each for each in parsed if each.from_qrels], aspects=dataset.aspects or None
    )
    return with_mimic_rate(scores, dataset.mimics, run)
