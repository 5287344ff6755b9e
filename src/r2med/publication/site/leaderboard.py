"""The data of the leaderboard: all systems, run here and published, with scores, intervals, marks and costs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from r2med.data.dataset_cards import cards
from r2med.evaluation.comparison.marks import average_marks
from r2med.evaluation.comparison.standings import Standing, intervals, points, run_words, single_runs
from r2med.evaluation.measure import HEADLINE_MEASURE
from r2med.evaluation.measure.measures import ASPECT_MEASURES
from r2med.evaluation.records.query_costs import query_cost
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection, StoredRecord
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.version import __version__
from r2med.foundation.pages.cells import Estimate
from r2med.foundation.text.plurals import counted
from r2med.publication.leaderboard.expectations import expectation_of
from r2med.publication.leaderboard.published import PublishedRow, published
from r2med.publication.site.answer_labels import answer_labels
from r2med.publication.site.board_sets import BoardSet, board_sets, dataset_names, repeats_of, runs_of, verified
from r2med.publication.site.system_facts import SYSTEM_KINDS, judged_by_kin, parts_of_published, parts_of_record

DEMO = "demo"
RUNS_NOT_STATED = "runs not stated"
"""Text of published rows, whose sources do not say how often a system was run."""

EXPLORED_MEASURES = ("nDCG@10", "R@10", "R@100", "MRR", "MAP")
"""The measures that the explorer offers. It can also compute others that an address names."""

REASON_SHOWN = 500
"""Number of characters of the reason why an entry is not verified."""

NOT_SEEN = "r2med verify computes scores again from the submitted runs; who made a run, and how, cannot be seen from it"
"""What every board says on each page. It is true of a board without submitted runs too."""

ASPECT_COLUMNS = tuple(measure for measure in ASPECT_MEASURES if measure.cutoff == 25)
"""The measures of aspects on the leaderboard: those that BRIGHT-Pro reports, and alpha-nDCG."""


def site_value(
    collection: RecordCollection,
    own_texts: Sequence[str] = (),
    answered: Collection[str] = (),
) -> dict[str, Any]:
    """Return the data that every page needs at once. Larger data are in separate files.

    `own_texts` are the user's datasets whose texts are in the board. Every page names them. `answered` are the datasets
    with answers of readers.
    """
    names = dataset_names(collection)
    sets = board_sets(collection)
    return {
        "foot": _foot(collection, own_texts),
        "measure": str(HEADLINE_MEASURE),
        "explored_measures": list(EXPLORED_MEASURES),
        "system_kinds": list(SYSTEM_KINDS),
        "aspect_measures": list(map(str, ASPECT_COLUMNS)),
        "datasets": [_dataset(collection, name) for name in names],
        "sets": [_set(each, names) for each in sets],
        "systems": list(_systems(collection, names, sets)),
        "published": [_published(row, names) for row in published()],
        **({"answers": {**answer_labels(), "datasets": _numbers(names, answered)}} if answered else {}),
    }


def _numbers(names: Sequence[str], some: Collection[str]) -> list[int]:
    return [number for number, name in enumerate(names) if name in some]


def _set(each: BoardSet, names: Sequence[str]) -> dict[str, Any]:
    return {
        "name": each.name,
        "group": each.group,
        "overlays": list(each.overlays),
        "labels": each.labels,
        "datasets": [names.index(name) for name in each.datasets],
        "missing": list(each.missing),
    }


def _published(row: PublishedRow, names: Sequence[str]) -> dict[str, Any]:
    return {
        **parts_of_published(row),
        "name": row.name,
        "values": [row.scores[name] / 100 if name in row.scores else None for name in names],
        "average": None if row.average is None else row.average / 100,
        "average_only": row.average_only,
        "runs": RUNS_NOT_STATED,
        "reported_by": row.reported_by,
        "source": row.source,
        "note": row.note,
        "max_length": row.max_length,
        "differs": row.differs,
        "command": expectation_of(row).command() if row.system else "",
        "reason": row.reason,
    }


def _dataset(collection: RecordCollection, name: str) -> dict[str, Any]:
    record = next((kept.record for kept in collection if kept.record.dataset.name == name), None)
    card = cards().get((published_name(record.dataset) if record else name).removeprefix(f"{DEMO}/"))
    counts = card.counts if card else None
    return {
        "name": name,
        "short": card.short if card and card.short else name,
        "task": record.dataset.task if record else card.task if card else "",
        "scenario": record.dataset.scenario if record else card.scenario if card else "",
        "queries": record.dataset.queries if record else counts.queries if counts else None,
        "documents": record.dataset.documents if record else counts.documents if counts else None,
        "apart": bool(card and card.also_averaged_without),
    }


def _systems(collection: RecordCollection, names: Sequence[str], sets: Sequence[BoardSet]) -> Iterator[dict[str, Any]]:
    parts = [collection.on(each.datasets) for each in sets]
    standings = [intervals(each) if each.cells else {} for each in parts]
    sound = [verified(of) for of in parts]
    marks = [
        average_marks(of.systems, points(of), single_runs(of)) if of.cells and not each.missing else {}
        for each, of in zip(sets, sound, strict=True)
    ]
    costs = {system: query_cost(list(repeats_of(collection, system))) for system in collection.systems}
    for system in collection.systems:
        kept = [each for each in collection if each.record.display_name == system]
        records = list(runs_of(collection, system))
        mine = [each.get(system) for each in standings]
        figures = {name: figure for each in mine if each for name, figure in each.datasets.items()}
        yield {
            **parts_of_record(records[0]),
            "name": system,
            "entry": kept[0].entry,
            "unverified": _unverified(kept),
            "figures": [known_score(figures.get(name)) for name in names],
            "averages": [known_score(_average(each, standing)) for each, standing in zip(sets, mine, strict=True)],
            "runs": _runs(collection, system),
            "marks": [asdict(each[system]) if system in each else None for each in marks],
            "cost": asdict(costs[system]),
            "failures": sum(record.failures + record.unordered for record in repeats_of(collection, system)),
            "lock": "" if _unverified(kept) else _lock(records),
            "aspects": [_aspects(of, system) for of in parts],
            "judged_by_kin": [record.dataset.name for record in records if judged_by_kin(record)],
        }


def _aspects(collection: RecordCollection, system: str) -> list[float] | None:
    """Return a system's means over the datasets with aspects; None if there are none, or it lacks one of them."""
    cells = collection.cells.values()
    having = [kept for kept in cells if all(str(each) in kept.record.mean for each in ASPECT_COLUMNS)]
    mine = [kept for kept in having if kept.record.display_name == system]
    if not mine or len(mine) < len({kept.record.dataset.name for kept in having}):
        return None
    return [round(fmean(_mean(kept, str(each)) for kept in mine), 6) for each in ASPECT_COLUMNS]


def _mean(kept: StoredRecord, measure: str) -> float:
    """Return the mean of a measure over the repeats of a system on a dataset."""
    return fmean(each.record.mean[measure] for each in kept.repeats)


def _runs(collection: RecordCollection, system: str) -> str:
    """Return in words how often a system was run on each of its datasets."""
    counts = [len(collection.repeats(system, name)) for name in collection.records(system)]
    return run_words(min(counts), collection.varies(system))


def _average(each: BoardSet, standing: Standing | None) -> Estimate | None:
    """Return the average of a system over a set; None if a dataset of the group has other labels."""
    return standing.mean if standing and not each.missing else None


def _unverified(kept: Sequence[StoredRecord]) -> str:
    """Return why a system of an entry is not verified; empty if all its records are, or were run here."""
    return next((each.unverified[:REASON_SHOWN] for each in kept if each.unverified), "")


def _lock(records: Sequence[Record]) -> str:
    """Return the digest of the lock that decided all records of a system beforehand; empty if there is none."""
    locks = {record.lock for record in records}
    return locks.pop() if len(locks) == 1 else ""


def known_score(points: Estimate | None) -> dict[str, float | None] | None:
    """Return a score in the form of the data files: between 0 and 1, with the ends of its interval.

    None if it is not known.
    """
    if points is None:
        return None
    ends = {"value": points.value, "low": points.low, "high": points.high}
    return {name: None if each is None else round(each / 100, 6) for name, each in ends.items()}


def share_data(share: Estimate | None) -> dict[str, float | None] | None:
    """Return an estimate that is not in points in the form of the data files; None if it is not known."""
    return None if share is None else {"value": share.value, "low": share.low, "high": share.high}


def _foot(collection: RecordCollection, own_texts: Sequence[str]) -> str:
    runs = [record for system in collection.systems for record in repeats_of(collection, system)]
    newest = max((record.created[:10] for record in runs), default="")
    records = f"{counted(len(runs), 'record')}, the newest of {newest}" if newest else "no records"
    foot = f"r2med {__version__} · {records} · {len(published())} published rows · {NOT_SEEN}"
    return f"{foot} · contains texts of documents and queries of {', '.join(own_texts)}" if own_texts else foot
