"""Retrievers: search a corpus with queries and return a Run."""

from r2med.systems.retrieve.run import Run
from r2med.systems.retrieve.trec import write_run

__all__ = ["Run", "write_run"]
