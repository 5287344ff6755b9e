"""The sets of datasets that the board averages: the datasets of a group, as published or with the same overlays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from r2med.data.dataset_cards import BENCHMARK, OWN_DATA, groups, home_group
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.records.used_labels import AS_PUBLISHED, overlay_names, published_name, used_labels


@dataclass(frozen=True)
class BoardSet:
    """Datasets whose scores are averaged together."""

    name: str
    """Its name, with the overlays: demo+judged."""
    group: str
    """The group of datasets: demo."""
    overlays: tuple[str, ...]
    """Names of the overlays whose labels count."""
    labels: str
    """In words, which labels count."""
    datasets: tuple[str, ...]
    """The datasets, with their overlays."""
    missing: tuple[str, ...] = ()
    """Datasets of the group that have no such labels. If there are any, there is no average."""


def board_sets(collection: RecordCollection) -> list[BoardSet]:
    """Return the sets of the datasets of records. The benchmark is always one of them."""
    record_on = {kept.record.dataset.name: kept.record for kept in collection}
    sets = dataset_sets(dataset_names(collection), record_on)
    return [_board_set(name, members, sets, record_on) for name, members in sets.items()]


def _board_set(
    name: str, members: Sequence[str], sets: Mapping[str, Sequence[str]], record_on: Mapping[str, Record]
) -> BoardSet:
    records = [record_on[member] for member in members if member in record_on]
    overlays = overlay_names(records[0].dataset) if records else ()
    if not overlays:
        return BoardSet(name, name, (), used_labels(records) or AS_PUBLISHED, tuple(members))
    group = name.removesuffix("".join(f"+{overlay}" for overlay in overlays))
    labelled = {published_name(record.dataset) for record in records}
    missing = tuple(member for member in sets.get(group, ()) if member not in labelled)
    return BoardSet(name, group, overlays, used_labels(records), tuple(members), missing)


def dataset_names(collection: RecordCollection) -> list[str]:
    """Return the datasets in their order. The names of data files contain the position of a dataset in this list."""
    return list(dict.fromkeys([*groups()[BENCHMARK], *collection.datasets]))


def dataset_sets(names: Sequence[str], records: Mapping[str, Record] | None = None) -> dict[str, list[str]]:
    """Return the groups of datasets that are averaged together, the user's own last.

    `records` are one for each dataset, where there is one. They know the overlays of a dataset.
    """
    sets: dict[str, list[str]] = {}
    for name in names:
        record = (records or {}).get(name)
        sets.setdefault(_home(record) if record else home_group(name), []).append(name)
    return {name: sets[name] for name in sorted(sets, key=lambda name: name.startswith(OWN_DATA))}


def _home(record: Record) -> str:
    return "+".join([home_group(published_name(record.dataset)), *overlay_names(record.dataset)])


def verified(collection: RecordCollection) -> RecordCollection:
    """Return the systems that were run here or verified. Only they decide what is best, and only they have marks."""
    marked = {kept.record.display_name for kept in collection if kept.unverified}
    return RecordCollection({key: kept for key, kept in collection.cells.items() if key[0] not in marked})


def runs_of(collection: RecordCollection, system: str) -> Iterator[Record]:
    """Yield one record of a system on each dataset. A ranking that was scored again with an overlay counts once."""
    records = collection.records(system)
    for name, record in records.items():
        if (base := published_name(record.dataset)) == name or base not in records:
            yield record


def repeats_of(collection: RecordCollection, system: str) -> Iterator[Record]:
    """Yield the records of `runs_of`, each with those of later repeats."""
    for record in runs_of(collection, system):
        yield from (kept.record for kept in collection.repeats(system, record.dataset.name))
