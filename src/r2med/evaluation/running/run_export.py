"""Export the runs of records as plain TREC files: `export_runs(sources, out)`."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

from r2med.evaluation.records.collection import MAX_FAILURES, collect, given_records
from r2med.evaluation.records.record_paths import slug
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import write_atomically


def export_runs(
    sources: str | Path | Sequence[str | Path],
    out: Path | str,
    results: Path | str = "results",
    max_failures: float = MAX_FAILURES,
) -> list[Path]:
    """Write the runs of records as text with six columns, and return the new files.

    `sources` are record files, folders, or names of systems in `results`. Each repeat has its own file. Raises
    UserError if the run file of a record is missing or was changed.
    """
    kept = collect(given_records(sources), results, max_failures).runs_of_all
    runs: list[Path] = []
    for each in kept:
        if (run := each.run_file) is None:
            raise UserError(f"{each.path}: this record has no run file: {each.how_to_make_it_again}")
        runs.append(run)
    files = [_place(each, Path(out)) for each in kept]
    for run, file in zip(runs, files, strict=True):
        with gzip.open(run) as lines:
            write_atomically(file, lines)
    return files


def _place(kept: StoredRecord, out: Path) -> Path:
    return out.joinpath(*map(slug, kept.record.dataset.name.split("/")), f"{stem_with_repeat(kept)}.trec")


def stem_with_repeat(kept: StoredRecord) -> str:
    """Return the name of the file of a record without its suffix, and with the number of its repeat if it is not 0."""
    return kept.path.stem + (f"-repeat-{kept.record.repeat}" if kept.record.repeat else "")
