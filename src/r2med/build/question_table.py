"""Questions from a table of one's own: CSV and its kin, JSON, Parquet, Excel."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator

from pydantic import Field

from r2med.build.items import Item, Question, Rejected
from r2med.build.source_files import SourceStep
from r2med.build.step import Streams, Work
from r2med.data.columns import question_columns
from r2med.data.table_files import READERS, Cell, open_tables

log = logging.getLogger("r2med")

_LINK = re.compile(r"https?://[^\s\"'<>|;,]+")


class ReadTable(SourceStep, kind="build"):
    """Read questions from a table with columns for question, answer and links: CSV, JSON, Parquet or Excel."""

    writes = "questions"
    endings = tuple(READERS)

    name: str = "read-table"
    id: str = Field("", description="the column of ids; rows are numbered without one")
    question: str = Field("", description="the column of questions, if it is not found by its name")
    answer: str = Field("", description="the column of answers")
    links: str = Field("", description="the column of addresses of pages, one or several in a cell")

    def run(self, streams: Streams, work: Work) -> Iterator[Item | Rejected]:
        """Yield a question for each row."""
        path = streams.path(self.path)
        given = {"query_id": self.id, "query": self.question, "answer": self.answer, "links": self.links}
        for table in open_tables(path):
            columns = question_columns(table, {role: column for role, column in given.items() if column})
            for notice in table.notices:
                log.warning("%s: %s", self.name, notice)
            for line, row in table:
                cells = {role: row.get(column, "") for role, column in columns.items()}
                made = Question(
                    id=self.prefix + (_text(cells.get("query_id", "")) or f"{path.stem}-{line}"),
                    text=_text(cells.get("query", "")),
                    answer=_text(cells.get("answer", "")),
                    links=tuple(dict.fromkeys(_LINK.findall(_text(cells.get("links", ""), "\n")))),
                    source=f"{path.name}:{line}",
                    licence=self.licence,
                )
                yield made if made.text else Rejected.of(made, "no text")


def _text(cell: Cell, joint: str = " ") -> str:
    return (cell if isinstance(cell, str) else joint.join(cell)).strip()
