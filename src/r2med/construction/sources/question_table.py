"""Read questions from a user's table: CSV, TSV, JSON, Parquet or Excel."""

from __future__ import annotations

import itertools
import logging
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from r2med.construction.items import Item, Rejected, SourceQuestion
from r2med.construction.sources.option_columns import option_columns, right_option, row_options
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable
from r2med.construction.step import StepWork, Streams
from r2med.core.errors import UserError
from r2med.data.columns import question_columns
from r2med.data.table import SAMPLE_ROWS, Cell, Row, SourceTable, text_of
from r2med.data.table_files import READERS, open_tables

log = logging.getLogger("r2med")

_LINK = re.compile(r"https?://[^\s\"'<>|;,]+")


class ReadTable(SourceStep, kind="build"):
    """Read questions from a table with columns for question, answer and links: CSV, JSON, Parquet or Excel."""

    writes = "questions"
    version = 2
    endings = tuple(READERS)

    name: str = "read-table"
    id: str = Field("", description="Column of ids. Without one, rows are numbered.")
    question: str = Field("", description="Column of questions, if it is not recognised by its name.")
    answer: str = Field("", description="Column of answers, if it is not recognised by its name.")
    links: str = Field("", description="Column of page addresses. A cell may hold several.")

    def run(self, streams: Streams, work: StepWork) -> Iterator[Item | Rejected]:
        """Yield a question for each row."""
        path = streams.path(self.path)
        given = {"query_id": self.id, "query": self.question, "answer": self.answer, "links": self.links}
        lines = path.suffix.lower() == ".jsonl"
        if lines:
            yield from (unreadable(f"{path.name}:{line}", str(row)) for line, row in _bad_lines(path))
        for table in [_json_lines(path)] if lines else open_tables(path):
            named = {role: column for role, column in given.items() if column}
            offered = option_columns(column for column in table.columns if column not in named.values())
            others = tuple(column for column in table.columns if column not in offered)
            columns = question_columns(replace(table, columns=others), named)
            for notice in table.notices:
                log.warning("%s: %s", self.name, notice)
            for line, row in table:
                cells = {role: row.get(column, "") for role, column in columns.items()}
                options = row_options(row, offered)
                made = SourceQuestion(
                    id=self.prefix + (_text(cells.get("query_id", "")) or f"{path.stem}-{line}"),
                    text=_text(cells.get("query", "")),
                    answer=right_option(_text(cells.get("answer", "")), options),
                    options=tuple(options.values()),
                    links=tuple(dict.fromkeys(_LINK.findall(_text(cells.get("links", ""), "\n")))),
                    source=f"{path.name}:{line}",
                    licence=self.licence,
                )
                if made.options and made.answer not in made.options:
                    yield Rejected.of(made, "answer is no option")
                else:
                    yield made if made.text else Rejected.of(made, "no text")


def _json_lines(path: Path) -> SourceTable:
    """Return a table of the lines that are JSON objects. Raises UserError if no line is."""

    def read() -> Iterator[Row]:
        for line, row in _lines(path):
            if not isinstance(row, SourceError):
                yield line, {str(name): text_of(value) for name, value in row.items()}

    first = (row for _, row in itertools.islice(read(), SAMPLE_ROWS))
    columns = tuple(dict.fromkeys(itertools.chain.from_iterable(first)))
    if not columns:
        raise UserError(f'{path}: no line is a JSON object: write one object per line, as in {{"question": "…"}}')
    return SourceTable(path, columns, read)


def _lines(path: Path) -> Iterator[tuple[int, dict[str, object] | SourceError]]:
    with closing(path.open("rb")) as stream:
        yield from SourceFile(path.name, path.name, stream).rows()


def _bad_lines(path: Path) -> Iterator[tuple[int, SourceError]]:
    return ((line, row) for line, row in _lines(path) if isinstance(row, SourceError))


def _text(cell: Cell, joint: str = " ") -> str:
    return (cell if isinstance(cell, str) else joint.join(cell)).strip()
