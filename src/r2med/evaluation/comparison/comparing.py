"""Compare systems by name: choose the records of rankings, of a lock or of answers, and compare them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from r2med.data.dataset_word import GivenData, data_words
from r2med.data.overlays import Overlay
from r2med.evaluation.comparison.comparison import Comparison, comparison
from r2med.evaluation.comparison.largest_group import names_systems
from r2med.evaluation.comparison.standings import MEASURE
from r2med.evaluation.measure.significance import RESAMPLES
from r2med.evaluation.records.answer_views import MAIN_MEASURE, RETRIEVED, AnswerViews, answer_views
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.lock_file import Lock, locked_collection
from r2med.evaluation.records.relabelled import recorded_datasets, relabelled
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import named_system


@dataclass(frozen=True)
class ComparedWith:
    """How systems are compared. The measure is None if it was not given."""

    measure: str | None = None
    baseline: str = ""
    slice_by: Sequence[str] = ()
    resamples: int = RESAMPLES
    seed: int = 0
    worse_than: float | None = None
    """Points that a system may lose against the baseline; None if this is not asked."""


@dataclass(frozen=True)
class ComparedRecords:
    """A comparison with the records that it is about."""

    comparison: Comparison
    collection: RecordCollection
    answers: RecordCollection | None = None
    """The answer records, if answers were compared."""


def compared_records(
    sources: Sequence[str | Path],
    results: Path,
    data: Sequence[GivenData],
    overlays: Sequence[Overlay],
    wanted: ComparedWith,
    max_failures: float,
    *,
    lock: Path | None = None,
    condition: str | None = None,
    answers: bool = False,
) -> ComparedRecords:
    """Compare the records of rankings, of a lock or of answers. Raises UserError for settings that exclude others."""
    _check(lock, overlays, condition, answers)
    _check_gate(wanted, lock)
    if answers:
        return _of_answers(sources, results, data_words(data), wanted, max_failures, condition or RETRIEVED)
    if lock:
        return _of_lock(lock, sources, results, data_words(data), wanted, max_failures)
    if wanted.baseline and names_systems(sources):  # who names some systems means the baseline too
        sources = [*sources, wanted.baseline]
    collection, words = collect(sources, results, max_failures), data_words(data)
    if overlays:
        collection, words = with_labels(collection, overlays, data), []
    compared = _compared(collection, wanted.measure or MEASURE, wanted, words, keep_systems=names_systems(sources))
    return ComparedRecords(compared, collection)


def _check(lock: Path | None, overlays: Sequence[Overlay], condition: str | None, answers: bool) -> None:
    if answers and (lock or overlays):
        raise UserError("answers are compared without a lock and without overlays: leave them out")
    if condition is not None and not answers:
        raise UserError(
            f"the condition {condition!r} is one of answers: answers (--answers) and condition (--condition)"
        )
    if lock and overlays:
        raise UserError(f"{lock}: a lock compares with the labels of its datasets: leave out overlays")


def _check_gate(wanted: ComparedWith, lock: Path | None) -> None:
    if wanted.worse_than is None:
        return
    gate = f"worse_than (--worse-than {wanted.worse_than})"
    if not math.isfinite(wanted.worse_than):
        raise UserError(f"{gate} must be a number of points, such as 1")
    if not (wanted.baseline or (lock and Lock.read(lock).baseline)):
        raise UserError(f"{gate} needs the system to compare with: baseline (--baseline)")


def _compared(
    collection: RecordCollection,
    measure: str,
    wanted: ComparedWith,
    data: Sequence[str],
    *,
    keep_systems: bool,
    is_locked: bool = False,
) -> Comparison:
    return comparison(
        collection,
        measure,
        wanted.baseline,
        wanted.slice_by,
        wanted.resamples,
        wanted.seed,
        data,
        keep_systems=keep_systems,
        is_locked=is_locked,
        worse_than=wanted.worse_than,
    )


def _of_lock(
    file: Path,
    sources: Sequence[str | Path],
    results: Path,
    data: Sequence[str],
    wanted: ComparedWith,
    max_failures: float,
) -> ComparedRecords:
    decided = _decided(file, wanted.measure, wanted.baseline, data)
    collection = locked_collection(decided, file, sources, results, max_failures)
    with_baseline = replace(wanted, baseline=decided.baseline)
    compared = _compared(
        collection, decided.measure, with_baseline, tuple(decided.datasets), keep_systems=True, is_locked=True
    )
    notice = f"decided beforehand: lock {decided.digest[:12]} of {file.name}"
    return ComparedRecords(replace(compared, notices=(*compared.notices, notice)), collection)


def _of_answers(
    sources: Sequence[str | Path],
    results: Path,
    data: Sequence[str],
    wanted: ComparedWith,
    max_failures: float,
    condition: str,
) -> ComparedRecords:
    answered = collect(sources, results, max_failures, kind="answers")
    views = answer_views(answered, wanted.measure or MAIN_MEASURE, condition, max_failures)
    compared = compared_answers(views, wanted, data, keep_systems=names_systems(sources))
    return ComparedRecords(compared, views.collection, answered)


def compared_answers(
    views: AnswerViews, wanted: ComparedWith, data: Sequence[str] = (), *, keep_systems: bool = False
) -> Comparison:
    """Compare answers. The baseline may be a system without its reader, if only one reader read its results."""
    read_systems = {name.partition(" · ")[0] for name in views.collection.systems}
    baseline = named_system(wanted.baseline, read_systems)
    named = [name for name in views.collection.systems if name.startswith(f"{baseline} · ")]
    if baseline and baseline not in views.collection.systems and len(named) == 1:
        wanted = replace(wanted, baseline=named[0])
    compared = _compared(views.collection, views.measure, wanted, data, keep_systems=keep_systems)
    return replace(compared, notices=(*compared.notices, *views.notices))


def _decided(file: Path, measure: str | None, baseline: str, data: Sequence[str]) -> Lock:
    """Return a lock. Raises UserError if another measure, baseline or dataset was asked for."""
    lock = Lock.read(file)
    for name, given, locked in (("measure", measure, lock.measure), ("baseline", baseline, lock.baseline)):
        if given and named_system(given, [locked]) != locked:
            raise UserError(f"{file}: its {name} is {locked or 'none'}, not {given}; a lock allows nothing else")
    if data and {*data} != {*lock.datasets}:
        raise UserError(f"{file}: its datasets are {', '.join(lock.datasets)}; a lock allows nothing else")
    return lock


def with_labels(
    collection: RecordCollection, overlays: Sequence[Overlay], data: Sequence[GivenData] = ()
) -> RecordCollection:
    """Return the records of a collection, scored with the labels of overlays too."""
    return relabelled(collection, overlays, recorded_datasets(collection, data))
