"""Write the files of a comparison for a paper: tables in three formats, and the scores as dots in SVG."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from r2med.evaluation.comparison.answer_worth import worth_tables
from r2med.evaluation.comparison.comparing import ComparedRecords
from r2med.evaluation.comparison.comparison import Comparison
from r2med.evaluation.comparison.report_tables import pair_table, score_table
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.page import Dots, Table
from r2med.foundation.pages.svg import dots_file
from r2med.foundation.pages.text_formats import table_csv, table_latex, table_markdown
from r2med.foundation.store.files import write_atomically
from r2med.foundation.text.plurals import counted

WRITERS = {"md": table_markdown, "tex": table_latex, "csv": table_csv}
"""Suffix of a table's file -> function that writes the table."""


def write_report(records: ComparedRecords, out: Path) -> tuple[Path, ...]:
    """Write the tables of a comparison and the figure of its scores. Return the files.

    A report about answers has tables of what retrieval is worth to them.
    """
    content = {
        f"{name}.{suffix}": write(table).encode()
        for name, table in _tables(records.comparison, records.answers).items()
        for suffix, write in WRITERS.items()
    }
    content["scores.svg"] = dots_file(_scores(records.comparison)).encode()
    return tuple(_write(out, content))


def _tables(compared: Comparison, answers: RecordCollection | None) -> dict[str, Table]:
    tables = {} if answers is None else {table.name: table for table in worth_tables(answers, compared.measure)}
    return tables | {"table": score_table(compared), "pairs": pair_table(compared)}


def _scores(compared: Comparison) -> Dots:
    """Return the mean of each system with its interval, the best first."""
    series = f"mean of {counted(len(compared.datasets), 'dataset')}, with its 95 % interval"
    return Dots([(each.system, {series: each.mean}) for each in compared.ranked], compared.heading)


def _write(folder: Path, content: Mapping[str, bytes]) -> Iterator[Path]:
    try:
        for name, body in content.items():
            write_atomically(folder / name, body)
            yield folder / name
    except OSError as error:
        raise UserError(
            f"cannot write the report to {folder} ({error.strerror}): choose another with out (--out)"
        ) from None
