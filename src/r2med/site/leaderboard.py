"""The data of the leaderboard: all systems, run here and published, with scores, intervals, classes and costs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from r2med.comparison.comparison import intervals, points
from r2med.comparison.system_classes import classes
from r2med.core.cost import total
from r2med.core.version import __version__
from r2med.data.dataset_cards import BENCHMARK, cards, groups
from r2med.leaderboard.expectations import expectation_of
from r2med.leaderboard.published import PublishedRow, published
from r2med.measure import HEADLINE_MEASURE
from r2med.pages.estimate import Estimate
from r2med.pages.latex import LATEX_SIGNS
from r2med.records.approximate_searches import approximate_searches
from r2med.records.collection import RecordCollection, StoredRecord
from r2med.records.record import Record
from r2med.site.system_facts import judged_by_kin, parts_of_published, parts_of_record
from r2med.text.plurals import counted

DEMO = "demo"
OWN = "own data"


def site_value(collection: RecordCollection, advice: bool = False, own_texts: Sequence[str] = ()) -> dict[str, Any]:
    """Return the data that every page needs at once. Larger data are in separate files.

    `own_texts` are the user's datasets whose texts are in the board. Every page names them.
    """
    names = dataset_names(collection)
    sets = dataset_sets(names)
    return {
        "foot": _foot(collection, own_texts),
        "advice": advice,
        "measure": str(HEADLINE_MEASURE),
        "latex": LATEX_SIGNS,
        "datasets": [_dataset(collection, name) for name in names],
        "sets": [{"name": name, "datasets": [names.index(each) for each in members]} for name, members in sets.items()],
        "systems": list(_systems(collection, names, sets)),
        "published": [_published(row, names) for row in published()],
    }


def dataset_names(collection: RecordCollection) -> list[str]:
    """Return the datasets in their order. The names of data files contain the position of a dataset in this list."""
    return list(dict.fromkeys([*groups()[BENCHMARK], *collection.datasets]))


def dataset_sets(names: Sequence[str]) -> dict[str, list[str]]:
    """Return groups of datasets that are averaged together: the benchmark's, the demo's, and all others."""
    sets: dict[str, list[str]] = {}
    for name in names:
        home = BENCHMARK if name in groups()[BENCHMARK] else DEMO if name in groups()[DEMO] else OWN
        sets.setdefault(home, []).append(name)
    return sets


def _published(row: PublishedRow, names: Sequence[str]) -> dict[str, Any]:
    return {
        **parts_of_published(row),
        "name": row.name,
        "values": [row.scores[name] / 100 if name in row.scores else None for name in names],
        "average": None if row.average is None else row.average / 100,
        "average_only": row.average_only,
        "reported_by": row.reported_by,
        "source": row.source,
        "note": row.note,
        "max_length": row.max_length,
        "differs": row.differs,
        "command": expectation_of(row).command() if row.system else "",
        "reason": row.reason,
    }


def _dataset(collection: RecordCollection, name: str) -> dict[str, Any]:
    card = cards().get(name.removeprefix(f"{DEMO}/"))
    record = next((kept.record for kept in collection if kept.record.dataset.name == name), None)
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


def part(collection: RecordCollection, datasets: Sequence[str]) -> RecordCollection:
    """Return the records on some of the datasets."""
    return RecordCollection({key: kept for key, kept in collection.cells.items() if key[1] in datasets})


def _systems(
    collection: RecordCollection, names: Sequence[str], sets: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    parts = [part(collection, members) for members in sets.values()]
    standings = [intervals(each) if each.cells else {} for each in parts]
    averages = [{name: standing.mean for name, standing in each.items() if standing.mean} for each in standings]
    levels = [classes(each.systems, points(each)) if each.cells else {} for each in parts]
    for system in collection.systems:
        records = list(collection.records(system).values())
        figures = {
            name: figure for each in standings if system in each for name, figure in each[system].datasets.items()
        }
        yield {
            **parts_of_record(records[0]),
            "name": system,
            "entry": _entry(next(kept for kept in collection if kept.record.system == system)),
            "figures": [triple(figures.get(name)) for name in names],
            "averages": [triple(each.get(system)) for each in averages],
            "classes": [each.get(system) for each in levels],
            "cost": _cost(records),
            "failures": sum(record.failures + record.unordered for record in records),
            "approximate": approximate_searches(records),
            "judged_by_kin": [record.dataset.name for record in records if judged_by_kin(record)],
        }


def _entry(kept: StoredRecord) -> str:
    """Return the name of the entry of a record; empty for a record that was run here."""
    return kept.path.stem if kept.is_entry else ""


def triple(figure: Estimate | None) -> list[float | None] | None:
    """Return a score in the form of the data files: value, low and high, between 0 and 1."""
    if figure is None:
        return None
    return [None if each is None else round(each / 100, 6) for each in (figure.value, figure.low, figure.high)]


def _cost(records: Sequence[Record]) -> dict[str, float | None]:
    """Return the mean cost of a query. Unknown values are None."""
    if not all(record.cost_is_known for record in records):
        return {"dollars": None, "seconds": None, "tokens": None}
    spent = total(stage.cost for record in records for stage in record.stages)
    queries = max(1, sum(record.dataset.queries for record in records))
    return {
        "dollars": None if spent.unpriced else spent.dollars / queries,
        "seconds": spent.seconds / queries,
        "tokens": spent.llm_tokens / queries,
    }


def _foot(collection: RecordCollection, own_texts: Sequence[str]) -> str:
    newest = max((kept.record.created[:10] for kept in collection), default="")
    records = f"{counted(len(collection.cells), 'record')}, the newest of {newest}" if newest else "no records"
    foot = f"r2med {__version__} · {records} · {len(published())} published rows"
    return f"{foot} · contains texts of documents and queries of {', '.join(own_texts)}" if own_texts else foot
