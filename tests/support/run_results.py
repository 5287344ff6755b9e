"""Results of a run from records and errors, without running anything."""

from collections.abc import Sequence
from pathlib import Path

from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.evaluation.running.results import Results, SystemResults

Cell = tuple[str, str, Record | str]
"""A system, a dataset, and its record or the error that prevented it."""


def results_of(*rows: Sequence[Cell]) -> Results:
    """Return the results with a row of cells for each system."""
    datasets = tuple(dataset for _, dataset, _ in rows[0])
    return Results(datasets, tuple(map(_row, rows)))


def _row(cells: Sequence[Cell]) -> SystemResults:
    contents = [content for _, _, content in cells]
    records = (None if isinstance(content, str) else StoredRecord(content, Path()) for content in contents)
    errors = (content if isinstance(content, str) else "" for content in contents)
    return SystemResults(cells[0][0], tuple(records), tuple(errors))
