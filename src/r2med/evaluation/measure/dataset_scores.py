"""All measures of a run on a dataset: those of the qrels, and those of the aspects that the dataset has."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.data.dataset import Dataset
from r2med.data.runs.run import Run
from r2med.evaluation.measure.measures import DEFAULT_MEASURES, Measure
from r2med.evaluation.measure.scores import Scores, score_run


def dataset_scores(dataset: Dataset, run: Run, measures: Iterable[Measure | str] = DEFAULT_MEASURES) -> Scores:
    """Return the scores of a run: `measures` as far as qrels give them, and those of aspects if the dataset has any."""
    parsed = [Measure.parse(measure) if isinstance(measure, str) else measure for measure in measures]
    return score_run(dataset.qrels, run, [each for each in parsed if each.from_qrels], aspects=dataset.aspects or None)
