"""The record of an evaluation: making it, writing it, reading it back."""

from r2med.results.batch import run
from r2med.results.cells import Results
from r2med.results.comparison import Comparison, compare
from r2med.results.evaluation import evaluate
from r2med.results.record import Record

__all__ = ["Comparison", "Record", "Results", "compare", "evaluate", "run"]
