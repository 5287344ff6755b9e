"""The benchmark's own folder: query.jsonl, corpus.jsonl, qrels.jsonl (or .txt, .tsv, .trec)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.data.problems import Problems
from r2med.data.qrels_file import read_judgements
from r2med.data.source_rows import (
    DocumentLine,
    DocumentRow,
    JudgementRow,
    QueryLine,
    QueryRow,
    document_row,
    query_row,
    read_rows,
)

QRELS_NAMES = ("qrels.jsonl", "qrels.txt", "qrels.tsv", "qrels.trec", "qrels/test.tsv")


class R2medFolder:
    """A folder in the benchmark's layout. Queries and qrels may be missing, because a corpus alone can be searched."""

    judged_queries_only = False
    reading: Sequence[str] = ()

    def __init__(self, root: Path) -> None:
        self.root = root
        self.corpus_files = [root / "corpus.jsonl"]
        self.query_file = root / "query.jsonl"
        self.qrels_file = next((root / n for n in QRELS_NAMES if (root / n).is_file()), root / QRELS_NAMES[0])
        self.needed = self.corpus_files

    def documents(self, problems: Problems) -> Iterator[DocumentRow]:
        """Yield the corpus, each title before its text."""
        path = self.corpus_files[0]
        for line, row in read_rows(path, DocumentLine, problems):
            if document := document_row(row.id, row.titled_text, path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        if self.query_file.is_file():
            for line, row in read_rows(self.query_file, QueryLine, problems):
                if query := query_row(row, self.query_file, line, problems):
                    yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels."""
        return read_judgements(self.qrels_file, problems) if self.qrels_file.is_file() else iter(())
