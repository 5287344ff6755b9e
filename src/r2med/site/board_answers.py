"""Find the answer records that a board shows: those on the datasets of its records."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from r2med.records.answer_checks import answer_faults
from r2med.records.answer_collection import AnswerCollection, StoredAnswers, answer_files, without_repeats
from r2med.records.answer_record import SUFFIX, AnswerRecord
from r2med.records.collection import RecordCollection, honestly_named

log = logging.getLogger("r2med")

_ELSEWHERE = "the board has no record of a system on its data"


def is_answer_file(source: str | Path) -> bool:
    """Return True if a source is the file of one answer record."""
    return str(source).endswith(SUFFIX)


def read_board_answers(
    sources: Sequence[str | Path], collection: RecordCollection, results: Path | str = "results"
) -> AnswerCollection:
    """Read the answer records in folders, in files, or of systems by name in `results`. There may be none.

    A record that r2med did not write, and one on other data than those of `collection`, is reported and left out.
    Raises UserError if a record was changed.
    """
    known = {(kept.record.dataset.name, kept.record.dataset.fingerprint) for kept in collection}
    kept = []
    for path, system in dict.fromkeys(_files(sources, Path(results))):
        record = honestly_named(AnswerRecord.read(path), path)
        if system not in ("", record.system):
            continue
        is_known = (record.dataset.name, record.dataset.fingerprint) in known
        if fault := next(answer_faults(record), "" if is_known else _ELSEWHERE):
            log.warning("%s: %s: it is left out", path, fault)
        else:
            kept.append(StoredAnswers(record, path))
    found = without_repeats(kept)
    for notice in found.notices:
        log.info("%s", notice)
    return found


def _files(sources: Sequence[str | Path], results: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file, and the system that it must be of; empty for any system."""
    for source in sources:
        path = Path(source)
        if is_answer_file(source):
            yield path, ""
        elif not path.is_file():
            folder, system = (path, "") if path.is_dir() else (results, str(source))
            yield from ((file, system) for file in answer_files(folder))
