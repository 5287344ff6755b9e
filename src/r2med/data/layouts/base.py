"""What every layout offers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from r2med.data.problems import Problems
from r2med.data.rows import Document, Judgement, QueryRow


class Layout(Protocol):
    """A dataset's files. Reading never raises for bad content: it reports to `problems` and goes on."""

    root: Path
    corpus_files: list[Path]
    query_file: Path
    qrels_file: Path
    judged_queries_only: bool
    """Whether queries without judgements belong to other splits and are left out."""

    def documents(self, problems: Problems) -> Iterator[Document]:
        """Yield the corpus."""

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""

    def judgements(self, problems: Problems) -> Iterator[Judgement]:
        """Yield the qrels."""
