"""The layouts of dataset folders: what each of them must offer, R2MED's and BEIR's, and which one a folder has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

from r2med.data.layouts.hub_tables import HubTables
from r2med.data.problems import DocumentRow, Problems
from r2med.data.qrels_file import read_judgements
from r2med.data.source_rows import (
    DocumentLine,
    JudgementRow,
    QueryLine,
    QueryRow,
    TextLine,
    document_row,
    query_row,
    read_rows,
    with_columns,
)
from r2med.foundation.core.errors import UserError


class Layout(Protocol):
    """The files of a dataset. Reading never raises for bad content: it reports to `problems` and continues."""

    root: Path
    corpus_files: list[Path]
    query_file: Path
    qrels_file: Path
    needed: list[Path]
    """Files that the dataset must have."""
    judged_queries_only: bool
    """True if queries without judgements belong to other splits and are left out."""
    reading: Sequence[str]
    """What a corpus depends on besides its files, such as the names of columns."""

    def documents(self, problems: Problems) -> Iterator[DocumentRow]:
        """Yield the corpus."""

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels."""


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


# The file that identifies each layout, and the class that reads it. The first match counts.
LAYOUTS: tuple[tuple[str, Callable[[Path], Layout]], ...] = (
    ("queries.jsonl", BeirFolder),
    ("query.jsonl", R2medFolder),
    ("query/*", HubTables.clone),
    ("query*.parquet", HubTables.clone),
    ("data/query*.parquet", HubTables.clone),
    ("corpus.jsonl", R2medFolder),
)


UNZIP = "unzip {0} -d {1}"
UNTAR = "tar -xf {0} -C {1}"
UNPACKING = {".zip": UNZIP, ".tar": UNTAR, ".tar.gz": UNTAR, ".tgz": UNTAR}
"""The command that unpacks an archive, by the end of its name."""


def is_dataset(folder: Path) -> bool:
    """Return True if a folder looks like a dataset."""
    return any(any(folder.glob(sign)) for sign, _ in LAYOUTS)


def unpack_advice(path: Path) -> str | None:
    """Return a line that says how to unpack a file if it is an archive, such as those that the benchmark publishes."""
    for suffix, command in UNPACKING.items():
        if path.name.lower().endswith(suffix) and path.is_file():
            typed = command.format(path, path.parent)
            return f"{path} is an archive, and a dataset is a folder: unpack it first with '{typed}'"
    return None


def detect(folder: Path) -> Layout:
    """Return the layout of a folder. Raises UserError if it has none, or files are missing."""
    for sign, layout in LAYOUTS:
        if any(folder.glob(sign)):
            dataset = layout(folder)
            break
    else:
        raise UserError(
            next(filter(None, map(unpack_advice, sorted(folder.glob("*")))), "")
            or f"{folder} is not a dataset folder: it needs query.jsonl, corpus.jsonl and qrels.jsonl "
            "(or BEIR's queries.jsonl, corpus.jsonl and qrels/test.tsv); r2med data import makes one of tables"
        )
    if missing := [str(path.relative_to(folder)) for path in dataset.needed if not path.is_file()]:
        raise UserError(f"{folder}: {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    return dataset
