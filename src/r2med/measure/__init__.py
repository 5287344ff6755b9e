"""Scores exact to trec_eval: what is measured (`Measure`), and how it is computed (`score`)."""

from r2med.measure.measures import DEFAULT_MEASURES, HEADLINE_MEASURE, Measure
from r2med.measure.scores import Scores, relevant_ranks, score

__all__ = ["DEFAULT_MEASURES", "HEADLINE_MEASURE", "Measure", "Scores", "relevant_ranks", "score"]
