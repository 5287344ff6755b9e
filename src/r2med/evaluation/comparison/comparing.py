"""Compare systems by name: choose the records of rankings, of a lock or of answers, and compare them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.given_data import GivenData, data_words, given_data
from r2med.data.overlays import Overlay, given_overlays
from r2med.evaluation.comparison.comparison import MEASURE, Comparison, comparison
from r2med.evaluation.comparison.largest_group import names_systems
from r2med.evaluation.comparison.undecided_ranges import ranged
from r2med.evaluation.measure.significance import RESAMPLES
from r2med.evaluation.records.answer_collection import MAIN_MEASURE, RETRIEVED, AnswerViews, collect_answers
from r2med.evaluation.records.collection import MAX_FAILURES, RecordCollection, collect, given_records
from r2med.evaluation.records.lock_file import Lock, locked_collection
from r2med.evaluation.records.relabelled import recorded_datasets, relabelled
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Setting
from r2med.foundation.core.one_or_many import several


def compare(
    *sources: str | Path | Sequence[str | Path],
    results: str | Path = "results",
    max_failures: float = MAX_FAILURES,
    measure: str = "",
    baseline: str = "",
    slice_by: str | Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    data: str | Path | Dataset | Sequence[str | Path | Dataset] = (),
    overlays: str | Path | Overlay | Sequence[str | Path | Overlay] = (),
    lock: str | Path = "",
    answers: bool = False,
    condition: str = RETRIEVED,
) -> Comparison:
    """Compare systems by their records: files, folders, or names of systems with records in `results`.

    With a baseline, every other system is compared with it. Without one, every pair is compared. `data` are datasets
    or groups. By default these are datasets of one group, because scores of different groups are never averaged. All
    systems that are named are compared, on the datasets that they share. If none is named, the largest group of systems
    that were run on the same datasets is compared, and notices name the rest. With `overlays`, the rankings are scored
    with the labels of these files too. `lock` is the file of a comparison that was decided beforehand: its systems,
    datasets, measure and baseline are used, and anything else is an error. The default measure is nDCG@10. With
    `answers`, the records of `r2med answer` are compared: each system with each reader, by a measure of answers (by
    default `accuracy`), in one `condition`. Raises UserError if no two systems were run on the same data, or if `data`
    names datasets of several groups.
    """
    read, by, words = given_records(*sources), several(slice_by), data_words(data)
    named = names_systems(read)
    if answers:
        if lock or overlays:
            raise UserError("answers are compared without a lock and without overlays: leave them out")
        views = answer_views(read, results, max_failures, measure, condition)
        return compared_answers(views, baseline, by, resamples, seed, words, keep_systems=named)
    if condition != RETRIEVED:
        raise UserError(
            f"the condition {condition!r} is one of answers: ", Setting("compare", answers=True, condition=...)
        )
    if lock:
        if overlays:
            raise UserError(f"{lock}: a lock compares with the labels of its datasets: leave out overlays")
        decided = _decided(lock, measure, baseline, words)
        locked = locked_collection(decided, lock, read, results, max_failures)
        compared = comparison(
            locked, decided.measure, decided.baseline, by, resamples, seed, tuple(decided.datasets), keep_systems=True
        )
        notice = f"decided beforehand: lock {decided.digest[:12]} of {Path(lock).name}"
        return replace(compared, notices=(*compared.notices, notice))
    collection = collect(read, results, max_failures)
    if labels := given_overlays(overlays):
        collection, words = with_labels(collection, labels, given_data(data)), []
    return comparison(collection, measure or MEASURE, baseline, by, resamples, seed, words, keep_systems=named)


def answer_views(
    sources: Sequence[str | Path], results: str | Path, max_failures: float, measure: str, condition: str
) -> AnswerViews:
    """Return answer records as records to compare. Without a measure of answers, accuracy is compared."""
    return collect_answers(sources, results).views(measure or MAIN_MEASURE, condition, max_failures)


def compared_answers(
    views: AnswerViews,
    baseline: str = "",
    slice_by: Sequence[str] = (),
    resamples: int = RESAMPLES,
    seed: int = 0,
    data: Sequence[str] = (),
    *,
    keep_systems: bool = False,
) -> Comparison:
    """Compare answers. The baseline may be a system without its reader, if only one reader read its results."""
    named = [name for name in views.collection.systems if name.startswith(f"{baseline} · ")]
    if baseline and baseline not in views.collection.systems and len(named) == 1:
        baseline = named[0]
    compared = comparison(
        views.collection, views.measure, baseline, slice_by, resamples, seed, data, keep_systems=keep_systems
    )
    shown = ranged(compared, views.collection) if views.measure == MAIN_MEASURE else compared
    return replace(shown, notices=(*shown.notices, *views.notices))


def _decided(file: str | Path, measure: str, baseline: str, data: Sequence[str]) -> Lock:
    """Return a lock. Raises UserError if another measure, baseline or dataset was asked for."""
    lock = Lock.read(file)
    for name, given, locked in (("measure", measure, lock.measure), ("baseline", baseline, lock.baseline)):
        if given not in ("", locked):
            raise UserError(f"{file}: its {name} is {locked or 'none'}, not {given}; a lock allows nothing else")
    if data and {*data} != {*lock.datasets}:
        raise UserError(f"{file}: its datasets are {', '.join(lock.datasets)}; a lock allows nothing else")
    return lock


def with_labels(
    collection: RecordCollection, overlays: Sequence[Overlay], data: Sequence[GivenData] = ()
) -> RecordCollection:
    """Return the records of a collection, scored with the labels of overlays too."""
    return relabelled(collection, overlays, recorded_datasets(collection, data))
