"""Read questions from a user's table: CSV, TSV, JSON, Parquet or Excel."""

from __future__ import annotations

import itertools
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from r2med.construction.items import Rejected, SourceQuestion, StreamItem
from r2med.construction.sources.source_files import SourceError, SourceFile, SourceStep, unreadable
from r2med.construction.step import StepWork, Streams
from r2med.data.tables.columns import question_columns
from r2med.data.tables.table import SAMPLE_ROWS, Cell, Row, SourceTable, text_of
from r2med.data.tables.table_files import READERS, open_tables
from r2med.foundation.core.errors import UserError, nearest

log = logging.getLogger("r2med")

_LINK = re.compile(r"https?://[^\s\"'<>|;,]+")


class ReadTable(SourceStep, kind="build"):
    """Read questions from a table with columns for question, answer and links: CSV, JSON, Parquet or Excel."""

    writes = "questions"
    expects = "a table with a column of questions"
    version = 2
    endings = tuple(READERS)

    name: str = "read-table"
    id: str = Field("", description="Column of ids. Without one, rows are numbered.")
    question: str = Field("", description="Column of questions, if it is not recognised by its name.")
    answer: str = Field("", description="Column of answers, if it is not recognised by its name.")
    links: str = Field("", description="Column of page addresses. A cell may hold several.")
    reasoning: str = Field("", description="Column of an expert's path of reasoning from the question to its answer.")

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield a question for each row."""
        path = streams.path(self.path)
        given = {"query_id": self.id, "query": self.question, "answer": self.answer, "links": self.links}
        lines = path.suffix.lower() == ".jsonl"
        if lines:
            yield from (unreadable(f"{path.name}:{line}", str(row)) for line, row in _bad_lines(path))
        for table in [_json_lines(path)] if lines else open_tables(path):
            named = {role: column for role, column in given.items() if column}
            if self.reasoning and self.reasoning not in table.columns:
                known = f"{nearest(self.reasoning, table.columns)}: {', '.join(table.columns)}"
                raise UserError(f"{table}: no column {self.reasoning!r}{known}")
            free = [column for column in table.columns if column != self.reasoning]
            offered = option_columns(column for column in free if column not in named.values())
            others = tuple(column for column in free if column not in offered)
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
                    reasoning=_text(row.get(self.reasoning, "")),
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


_LETTERED = re.compile(r"(?:(?:option|choice|opt)[ _-]*|op)?([a-j])", re.IGNORECASE)
"""Names of columns with one option each, such as A, option B, choice_c, or opd in MedMCQA."""
_LISTED = ("options", "choices", "answer options", "answer choices", "answer_options", "answer_choices")
_MARK = re.compile(r"\(?([A-Ja-j])[.):]\s+")
_SEPARATORS = ("\n", "|", ";")


def option_columns(columns: Iterable[str]) -> list[str]:
    """Return the columns that hold options: one per letter from A on, or else one column that lists them all."""
    named = list(columns)
    by_letter = {match[1].upper(): column for column in named if (match := _LETTERED.fullmatch(column))}
    if {"A", "B"} <= by_letter.keys():
        return [by_letter[letter] for letter in sorted(by_letter)]
    return [column for column in named if column.lower() in _LISTED][:1]


def row_options(row: Mapping[str, Cell], columns: Sequence[str]) -> dict[str, str]:
    """Return the options of a row by letter; empty if it has none. `columns` comes from `option_columns`."""
    cells = [row.get(column, "") for column in columns]
    parts = (
        _parts(cells[0]) if len(cells) == 1 else [cell if isinstance(cell, str) else " ".join(cell) for cell in cells]
    )
    lettered = ((chr(ord("A") + number), part.strip()) for number, part in enumerate(parts[:26]))
    return {letter: _MARK.sub("", text, 1) for letter, text in lettered if text}


def right_option(answer: str, options: Mapping[str, str]) -> str:
    """Return the text of the option that an answer names by its letter. Any other answer is returned unchanged."""
    letter = answer.strip("(). ").upper()
    return answer if answer in options.values() else options.get(letter, answer)


def _parts(cell: Cell) -> list[str]:
    """Return the parts of a cell that holds a list, JSON, or a text with a separator."""
    if not isinstance(cell, str):
        return cell
    try:
        content = json.loads(cell)
    except (ValueError, RecursionError):
        separator = next((each for each in _SEPARATORS if each in cell), None)
        return cell.split(separator) if separator else []
    if isinstance(content, dict):
        content = [content[letter] for letter in sorted(content)]
    return [str(each) for each in content] if isinstance(content, list) else []
