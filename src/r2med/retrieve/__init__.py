"""Retrievers: from a corpus and queries to a Run."""

from r2med.retrieve.run import Run
from r2med.retrieve.trec import read_run, write_run

__all__ = ["Run", "read_run", "write_run"]
