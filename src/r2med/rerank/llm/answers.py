"""Reading LLMs' answers: never an exception, and whatever had to be mended is counted by kind."""

from r2med.rerank.llm.permutation import read_permutation
from r2med.rerank.llm.scores import HIGHEST, read_score, read_scores

VERSION = 1
"""Goes into the record: raw answers are what is journaled, so a change in reading changes orders without a call."""

__all__ = ["HIGHEST", "VERSION", "read_permutation", "read_score", "read_scores"]
