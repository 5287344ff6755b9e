"""Runs: the rankings of a search, their tie rule, and the files that hold them."""

from r2med.data.runs.run import Run
from r2med.data.runs.trec import write_run

__all__ = ["Run", "write_run"]
