"""Score rankings exactly as trec_eval does: `Measure` names a measure, and `score_run` computes it."""

from r2med.evaluation.measure.measures import DEFAULT_MEASURES, HEADLINE_MEASURE, Measure
from r2med.evaluation.measure.scores import Scores, relevant_ranks, score_run

__all__ = ["DEFAULT_MEASURES", "HEADLINE_MEASURE", "Measure", "Scores", "relevant_ranks", "score_run"]
