"""A BEIR folder: corpus.jsonl with `_id`, `title` and `text`, queries.jsonl, qrels/test.tsv."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.data.problems import Problems
from r2med.data.qrels_file import read_judgements
from r2med.data.source_rows import DocumentRow, JudgementRow, QueryRow, document_row, query_row, read_jsonl


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
        for line, row in read_jsonl(path, {"_id": str, "text": str}, problems, {"title": str}):
            text = f"{row.get('title') or ''} {row['text']}".strip()
            if document := document_row(row["_id"], text, path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        for line, row in read_jsonl(self.query_file, {"_id": str, "text": str}, problems):
            if query := query_row({"id": row["_id"], "text": row["text"]}, self.query_file, line, problems):
                yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels of the test split."""
        return read_judgements(self.qrels_file, problems)
