"""Export the runs of records as plain TREC files, with or without metadata at the top: `export_runs(sources, out)`."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.core.errors import UserError
from r2med.evaluation.evaluation import slug
from r2med.evaluation.ir_metadata import read_header
from r2med.records.collection import MAX_FAILURES, StoredRecord, collect
from r2med.store.files import write_atomically


def export_runs(
    sources: Sequence[str | Path],
    out: Path,
    results: Path | str = "results",
    header: bool = False,
    max_failures: float = MAX_FAILURES,
) -> list[Path]:
    """Write the runs of records as text with six columns, and return the new files.

    `sources` are record files, folders, or names of systems in `results`. With `header`, each file begins with its
    ir_metadata as comment lines. Raises UserError if the run file of a record is missing.
    """
    kept = list(collect(sources, results, max_failures))
    for each in kept:
        if each.run_file is None:
            raise UserError(f"{each.path}: its run file is missing: run {each.record.system} again")
    files = [_place(each, out) for each in kept]
    for each, file in zip(kept, files, strict=True):
        write_atomically(file, _lines(each, header))
    return files


def _place(kept: StoredRecord, out: Path) -> Path:
    return out.joinpath(*map(slug, kept.record.dataset.name.split("/")), f"{kept.path.stem}.trec")


def _lines(kept: StoredRecord, header: bool) -> Iterator[bytes]:
    """Yield the lines of a run. Comments in a run are its metadata, which version 0.2 wrote into the file."""
    assert kept.run_file is not None
    beside = read_header(kept.run_file) if header else []
    yield from (f"{line}\n".encode() for line in beside)
    with gzip.open(kept.run_file) as run:
        yield from (line for line in run if (header and not beside) or not line.startswith(b"#"))
