"""Scores exact to trec_eval: what is measured (`Measure`), and how it is computed (`score`)."""

from r2med.measure.measures import DEFAULT, Measure
from r2med.measure.scores import Scores, score

__all__ = ["DEFAULT", "Measure", "Scores", "score"]
