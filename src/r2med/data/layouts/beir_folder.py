"""A BEIR folder: corpus.jsonl with `_id`, `title` and `text`, queries.jsonl, qrels/test.tsv."""

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
    TextLine,
    document_row,
    query_row,
    read_rows,
    with_columns,
)

BEIR_DOCUMENT = with_columns(DocumentLine, {"id": "_id"})
BEIR_QUERY = with_columns(TextLine, {"id": "_id"})


class BeirFolder:
    """A folder in BEIR's layout. The test split is read, and queries of other splits are left out."""

    judged_queries_only = True
    reading: Sequence[str] = ()

    def __init__(self, root: Path) -> None:
        self.root = root
        self.corpus_files = [root / "corpus.jsonl"]
        self.query_file = root / "queries.jsonl"
        self.qrels_file = root / "qrels" / "test.tsv"
        self.needed = [*self.corpus_files, self.query_file, self.qrels_file]

    def documents(self, problems: Problems) -> Iterator[DocumentRow]:
        """Yield the corpus, each title before its text as BEIR's evaluators join them."""
        path = self.corpus_files[0]
        for line, row in read_rows(path, BEIR_DOCUMENT, problems):
            text = f"{row.title or ''} {row.text}".strip()
            if document := document_row(row.id, text, path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        for line, row in read_rows(self.query_file, BEIR_QUERY, problems):
            if query := query_row(QueryLine(id=row.id, text=row.text), self.query_file, line, problems):
                yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels of the test split."""
        return read_judgements(self.qrels_file, problems)
