"""A dataset in some tables of a hub repository: BEIR's and MTEB's configs, BRIGHT's, BRIGHT-Pro's, or pairs of texts.

The columns of a table are recognised by their names. One notice says which table and column was taken for what.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from pydantic import field_validator

from r2med.data.layouts.hub_listing import HubTable, Role, config_files
from r2med.data.problems import DocumentRow, Problems
from r2med.data.qrels_file import read_judgements
from r2med.data.source_rows import (
    AnyRow,
    AspectRow,
    DocumentLine,
    Id,
    JudgementLine,
    JudgementRow,
    QueryLine,
    QueryRow,
    SourceRow,
    checked_row,
    checked_rows,
    columns_of,
    document_row,
    judgement_row,
    query_row,
    read_rows,
    with_columns,
)
from r2med.data.tables.table_files import open_tables
from r2med.foundation.core.errors import UserError

COLUMNS: Mapping[Role, Mapping[str, tuple[str, ...]]] = {
    "documents": {
        "id": ("_id", "id", "corpus-id", "corpus_id", "doc_id", "docid", "pid"),
        "text": ("text", "content", "contents", "passage"),
        "title": ("title",),
    },
    "queries": {
        "id": ("_id", "id", "query-id", "query_id", "qid"),
        "text": ("text", "query", "question", "contents"),
        "answer": ("answer", "gold_answer"),
        "body_system": ("body_system",),
        "excluded_ids": ("excluded_ids",),
        "needs_inference": ("needs_inference",),
        "options": ("options",),
    },
    "judgements": {
        "q_id": ("query-id", "q_id", "query_id", "qid"),
        "p_id": ("corpus-id", "p_id", "corpus_id", "doc_id", "docid", "pid"),
        "score": ("score", "relevance", "label", "grade"),
    },
    "aspects": {"id": ("id", "_id"), "weight": ("weight",), "documents": ("supporting_docs",)},
    "pairs": {"question": ("question", "query"), "answer": ("answer", "passage", "context")},
}
"""Part of a dataset -> role of a column -> its names on the hub. The first name that a table has counts."""

OPTIONAL = {"title", "answer", "body_system", "excluded_ids", "needs_inference", "options"}

RELEVANT_IDS = ("gold_ids_long", "gold_ids")
"""Columns of relevant documents in a table of queries, as in BRIGHT: of its long documents, and of its passages."""

NO_IDS = ["N/A"]
"""What BRIGHT writes for an empty list of ids."""

_ASPECT = re.compile(r"(.+?)-(?:a|aspect-)\d+")
"""The id of an aspect in BRIGHT-Pro: that of its query and a number."""

MAX_BATCH_ROWS, MAX_BATCH_BYTES = 1024, 32 << 20
"""Rows of a Parquet file that are read at a time, and about how many bytes."""


class HubDocument(DocumentLine):
    """One row of a corpus."""

    id: Id


class HubQuery(QueryLine):
    """One row of a table of queries."""

    id: Id

    @field_validator("excluded_ids")
    @classmethod
    def _none(cls, ids: list[str] | None) -> list[str] | None:
        return [] if ids == NO_IDS else ids


class HubJudgement(JudgementLine):
    """One row of a table of qrels."""

    q_id: Id
    p_id: Id


class RelevantIds(SourceRow):
    """A query with its relevant documents."""

    id: Id
    documents: list[Any]


class HubAspect(SourceRow):
    """An aspect of the answer to a query."""

    id: str
    weight: int | float
    documents: list[Any]


class HubPair(SourceRow):
    """A question and its answer."""

    question: str | None = None
    answer: str | None = None


@dataclass(frozen=True)
class TableColumns:
    """The columns of a table by role."""

    table: HubTable
    columns: Mapping[str, str]

    def __str__(self) -> str:
        return f"{self.table} ({', '.join(self.columns.values())})"


class HubTables:
    """The tables of one dataset in a folder of a repository."""

    def __init__(self, root: Path, tables: Mapping[Role, HubTable], *, all_queries: bool = False) -> None:
        """Recognise the columns. Raises UserError if a table has none for a part of a dataset.

        Queries without judgements belong to other splits and are left out, unless `all_queries`.
        """
        self.root = root
        self._tables = tables
        self._parts = {role: part for role, table in tables.items() if (part := self._part(role, table))}
        self._relevant = self._relevant_ids()
        self.corpus_files = self._paths("pairs" if "pairs" in tables else "documents")
        self.query_file = (self._paths("queries") or self._paths("pairs") or [root / "queries"])[0]
        judged = self._paths("judgements") or ([self.query_file] if self._judges_itself else [root / "qrels"])
        self.qrels_file = judged[0]
        self.needed = self.corpus_files
        self.judged_queries_only = "judgements" in self._parts and not all_queries
        self.reading: Sequence[str] = (
            str([(role, str(part), part.table.files) for role, part in self._parts.items()]),
        )

    @classmethod
    def clone(cls, root: Path) -> HubTables:
        """Return the benchmark's configs `corpus`, `query` and `qrels` of a repository on disk."""
        configs: dict[Role, str] = {"documents": "corpus", "queries": "query", "judgements": "qrels"}
        tables = {
            role: HubTable(config, config, tuple(str(path.relative_to(root)) for path in config_files(root, config)))
            for role, config in configs.items()
        }
        return cls(root, tables, all_queries=True)

    @property
    def has_aspects(self) -> bool:
        """True if one of the tables holds aspects of the queries."""
        return "aspects" in self._parts

    @property
    def _judges_itself(self) -> bool:
        return bool(self._relevant) or "pairs" in self._parts or self.has_aspects

    def summary(self) -> str:
        """Return what was taken for what, as a sentence without its subject."""
        parts = [f"{role} from {part}" for role, part in self._parts.items()]
        if self._relevant:
            parts.append(f"judgements from {self._parts['queries'].table} ({self._relevant})")
        elif self.has_aspects and "judgements" not in self._parts:
            parts.append("judgements from the aspects")
        return "; ".join(parts)

    def documents(self, problems: Problems) -> Iterator[DocumentRow]:
        """Yield the corpus, each title before its text."""
        if "pairs" in self._parts:
            for number, path, line, pair in self._pairs(problems):
                if document := document_row(f"d{number}", pair.answer or "", path, line, problems):
                    yield document
            return
        for path, line, row in self._rows("documents", HubDocument, problems):
            if document := document_row(row.id, row.titled_text, path, line, problems):
                yield document

    def queries(self, problems: Problems) -> Iterator[QueryRow]:
        """Yield the queries."""
        if "pairs" in self._parts:
            for number, path, line, pair in self._pairs(problems):
                question = QueryLine(id=f"q{number}", text=pair.question or "")
                if query := query_row(question, path, line, problems):
                    yield query
            return
        for path, line, row in self._rows("queries", HubQuery, problems):
            if query := query_row(row, path, line, problems):
                yield query

    def judgements(self, problems: Problems) -> Iterator[JudgementRow]:
        """Yield the qrels: a table of their own, a column of the queries, or the documents of the aspects."""
        if "judgements" in self._parts:
            yield from self._judged_rows(problems)
        elif self._relevant:
            columns = {"id": self._parts["queries"].columns["id"], "documents": self._relevant}
            row_type = with_columns(RelevantIds, columns)
            for path, line, row in read_tables(self._paths("queries"), row_type, problems):
                for document in dict.fromkeys(row.documents) if row.documents != NO_IDS else ():
                    yield JudgementRow(row.id, str(document), 1, path, line)
        elif "pairs" in self._parts:
            for number, path, line, _ in self._pairs(Problems()):
                yield JudgementRow(f"q{number}", f"d{number}", 1, path, line)
        else:
            for aspect in self.aspects(Problems()):
                for document in dict.fromkeys(aspect.documents):
                    yield JudgementRow(aspect.query, document, 1, aspect.path, aspect.line)

    def aspects(self, problems: Problems) -> Iterator[AspectRow]:
        """Yield the aspects of the queries, if there are any."""
        if not self.has_aspects:
            return
        for path, line, row in self._rows("aspects", HubAspect, problems):
            match = _ASPECT.fullmatch(row.id)
            if match is None:
                problems.add(path, line, f"aspect {row.id!r} does not name its query, as in QUERY-a1")
            else:
                yield AspectRow(match[1], row.id, float(row.weight), tuple(row.documents), path, line)

    def _judged_rows(self, problems: Problems) -> Iterator[JudgementRow]:
        paths = self._paths("judgements")
        if paths[0].suffix == ".tsv":
            for path in paths:
                yield from read_judgements(path, problems)
            return
        for path, line, row in self._rows("judgements", HubJudgement, problems):
            if judgement := judgement_row(row, path, line, problems):
                yield judgement

    def _pairs(self, problems: Problems) -> Iterator[tuple[int, Path, int, HubPair]]:
        """Yield (number, file, line, row) of the pairs. Pairs with an empty text are left out with a notice."""
        empty = 0
        numbers = itertools.count()
        for path, line, row in self._rows("pairs", HubPair, problems):
            if (row.question or "").strip() and (row.answer or "").strip():
                yield next(numbers), path, line, row
            else:
                empty += 1
        if empty:
            problems.notice(f"{self.query_file}: {empty:,} pairs without a question or an answer left out")

    def _rows(self, role: Role, row_type: type[AnyRow], problems: Problems) -> Iterator[tuple[Path, int, AnyRow]]:
        """Yield the rows of a part, whichever names its columns have."""
        if part := self._parts.get(role):
            yield from read_tables(self._paths(role), with_columns(row_type, part.columns), problems)

    def _paths(self, role: Role) -> list[Path]:
        return [self.root / file for file in self._tables[role].files] if role in self._tables else []

    def _part(self, role: Role, table: HubTable) -> TableColumns | None:
        """Return a table with its columns; None for a table `default` that does not hold judgements after all."""
        path = self.root / table.files[0]
        has = head(path)
        found = {name: next((each for each in COLUMNS[role][name] if each in has), "") for name in COLUMNS[role]}
        missing = [name for name, column in found.items() if not column and name not in OPTIONAL]
        if role == "judgements" and missing and path.suffix == ".tsv":
            return TableColumns(table, {"q_id": "query", "p_id": "document", "score": "grade"})
        if missing and (role, table.config) == ("judgements", "default"):
            return None
        if missing or (role == "pairs" and not found["answer"]):
            raise UserError(
                f"{path}: it has the columns {', '.join(has)}, which are not those of {role} "
                f"({', '.join(COLUMNS[role][(missing or ['answer'])[0]])}): "
                f"r2med data import {quote(str(path))} --out DIR makes a dataset of it, and asks for its columns"
            )
        return TableColumns(table, {name: column for name, column in found.items() if column})

    def _relevant_ids(self) -> str:
        """Return the column of relevant documents in the table of queries, if there are no other judgements."""
        if "queries" not in self._parts or "judgements" in self._parts:
            return ""
        has = head(self._paths("queries")[0])
        long = "long" in self._tables["documents"].config
        return next((column for column in RELEVANT_IDS[0 if long else 1 :] if column in has), "")


def head(path: Path) -> list[str]:
    """Return the columns of a table. Raises UserError if the file cannot be read."""
    if path.suffix != ".parquet":
        return list(open_tables(path)[0].columns)
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return list(pq.read_schema(path).names)
    except (pa.ArrowInvalid, OSError) as error:
        raise UserError(f"{path}: not a readable Parquet file ({error}): download it again") from None


def read_tables(
    files: Sequence[Path], row_type: type[AnyRow], problems: Problems
) -> Iterator[tuple[Path, int, AnyRow]]:
    """Yield (file, line, row) over the files of a table, whichever format they have. Delimited cells are all texts."""
    for path in files:
        if path.suffix == ".parquet":
            yield from _read_parquet(path, row_type, problems)
        elif path.suffix in (".csv", ".tsv"):
            for line, cells in open_tables(path)[0]:
                if checked := checked_row(cells, row_type, path, line, problems):
                    yield path, line, checked
        else:
            for line, row in read_rows(path, row_type, problems):
                yield path, line, row


def _read_parquet(path: Path, row_type: type[AnyRow], problems: Problems) -> Iterator[tuple[Path, int, AnyRow]]:
    """Yield the rows of a file. Columns that must be there and are missing are reported once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            columns, names = columns_of(row_type), file.schema_arrow.names
            missing = [name for name, is_required in columns.items() if is_required and name not in names]
            for name in missing:
                problems.add(path, None, f"missing column {name!r}")
            if missing:
                return
            size, number = _batch_rows(file.metadata), 0
            for batch in file.iter_batches(batch_size=size, columns=[name for name in names if name in columns]):
                for row in checked_rows(batch.to_pylist(), row_type, path, number + 1, problems):
                    number += 1
                    if row is not None:
                        yield path, number, row
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        problems.add(path, None, f"not a readable Parquet file ({error}): download it again")


def _batch_rows(metadata: Any) -> int:
    """Return the number of rows to read at a time, so that long documents do not fill the memory."""
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    return max(1, min(MAX_BATCH_ROWS, MAX_BATCH_BYTES * int(metadata.num_rows) // max(1, int(size))))
