"""Scores exact to trec_eval: what is measured (`Measure`), and how it is computed (`score`)."""

from r2med.measure.measures import DEFAULT, HEADLINE, Measure
from r2med.measure.scores import Scores, gold_ranks, score

__all__ = ["DEFAULT", "HEADLINE", "Measure", "Scores", "gold_ranks", "score"]
