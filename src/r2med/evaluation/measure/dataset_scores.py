"""All measures of a run on a dataset: those of the qrels, and those of further labels that the dataset has."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import DEFAULT_MEASURES, Measure
from r2med.evaluation.measure.mimic_rate import with_mimic_rate
from r2med.evaluation.measure.scores import Scores, scores_of


def dataset_scores(dataset: Dataset, run: Run, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Return the scores of a run: `measures` as far as qrels give them, and all that the dataset's labels allow."""
    parsed = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in measures]
    scores = scores_of(
        dataset.qrels, run, [each for each in parsed if each.from_qrels], aspects=dataset.aspects or None
    )
    return with_mimic_rate(scores, dataset.mimics, run)
