"""The benchmark's own folder: query.jsonl, corpus.jsonl, qrels.jsonl (or .txt, .tsv, .trec)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.data.problems import Problems
from r2med.data.qrels_file import read_judgements
from r2med.data.source_rows import (
    DocumentRow,
    Fields,
    JudgementRow,
    QueryRow,
    document_row,
    query_row,
    read_jsonl,
    with_title,
)

DOCUMENT_FIELDS: Fields = {"id": str, "text": str}
DOCUMENT_OPTIONS: Fields = {"title": str}
QUERY_FIELDS: Fields = {"id": str, "text": str}
QUERY_OPTIONS: Fields = {
    "answer": str,
    "body_system": str,
    "excluded_ids": list,
    "needs_inference": str,
    "options": (list, dict),
}
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
        for line, row in read_jsonl(path, DOCUMENT_FIELDS, problems, DOCUMENT_OPTIONS):
            if document := document_row(row["id"], with_title(row), path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        if self.query_file.is_file():
            for line, row in read_jsonl(self.query_file, QUERY_FIELDS, problems, QUERY_OPTIONS):
                if query := query_row(row, self.query_file, line, problems):
                    yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels."""
        return read_judgements(self.qrels_file, problems) if self.qrels_file.is_file() else iter(())
