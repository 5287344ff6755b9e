"""Retrievers: search a corpus with queries and return a Run."""

from r2med.retrieve.run import Run
from r2med.retrieve.trec import write_run

__all__ = ["Run", "write_run"]
