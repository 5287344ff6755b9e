"""Choose the systems of a comparison: the largest group that was run on the same datasets.

One half-run system must not remove datasets for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path

from r2med.evaluation.comparison.one_group import homes_of, not_averaged, preference
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.records.used_labels import published_names

Group = tuple[frozenset[str], frozenset[str]]
"""Systems, and the datasets that all of them were run on."""


def names_systems(sources: Sequence[str | Path]) -> bool:
    """Return True if sources of records name systems or files, which are then all compared, and not only folders."""
    return not all(Path(source).is_dir() for source in sources)


def largest_group(
    collection: RecordCollection, baseline: str = "", named: bool = False
) -> tuple[RecordCollection, list[str]]:
    """Return the records of the largest group of systems, and a notice for everything else.

    The largest group has the most scored queries in all. The baseline belongs to it. If the user did not name the
    datasets, they are of one home group: the one whose largest group has the most systems. The collection is returned
    as it is if no two systems share a dataset.
    """
    bases = published_names(each.record for each in collection)
    homes = {("", ""): list(collection.datasets)} if named else homes_of({n: bases[n] for n in collection.datasets})
    groups = {home: _largest(collection, members, baseline) for home, members in homes.items()}
    comparable = [home for home in homes if len(groups[home][0]) > 1]
    if not comparable:
        return collection, []
    home = min(comparable, key=lambda each: (preference(each), -len(groups[each][0])))
    systems, datasets = groups[home]
    shared = {key: kept for key, kept in collection.cells.items() if key[0] in systems and key[1] in datasets}
    notices = [*_left_out(collection, homes[home], systems, datasets)]
    notices += [not_averaged(other, members) for other, members in homes.items() if other != home]
    return RecordCollection(shared), notices


def _largest(collection: RecordCollection, members: Sequence[str], baseline: str) -> Group:
    """Return the largest group on some datasets. It has no systems if no two systems share a dataset."""
    run_on = {
        system: frozenset(name for name in members if (system, name) in collection.cells)
        for system in collection.systems
    }
    sizes = {
        name: next(len(kept.record.per_query) for key, kept in collection.cells.items() if key[1] == name)
        for name in members
    }
    distinct = dict.fromkeys(run_on.values())
    candidates = dict.fromkeys([*distinct, *(a & b for a, b in combinations(distinct, 2))])
    best: Group = (frozenset(), frozenset())
    for datasets in candidates:
        systems = frozenset(system for system, names in run_on.items() if datasets and datasets <= names)
        if len(systems) > 1 and (not baseline or baseline in systems):
            best = max(best, (systems, datasets), key=lambda each: _order(each, sizes))
    return best


def _order(group: Group, sizes: dict[str, int]) -> tuple[int, int]:
    systems, datasets = group
    return len(systems) * sum(sizes[name] for name in datasets), len(systems)


def _left_out(
    collection: RecordCollection, members: Sequence[str], systems: frozenset[str], datasets: frozenset[str]
) -> Iterator[str]:
    """Yield which systems and which datasets of one home group are left out."""
    lacking: dict[tuple[str, ...], list[str]] = {}
    for system in collection.systems:
        missing = tuple(name for name in members if name in datasets and (system, name) not in collection.cells)
        if system not in systems:
            lacking.setdefault(missing, []).append(system)
    for missing, without in lacking.items():
        verb, subject = ("is", "it was") if len(without) == 1 else ("are", "they were")
        yield f"{', '.join(without)} {verb} left out: {subject} not run on {', '.join(missing)}"
    by_system: dict[str, list[str]] = {}
    for name in members:
        if name not in datasets:
            first = next(
                each for each in collection.systems if each in systems and (each, name) not in collection.cells
            )
            by_system.setdefault(first, []).append(name)
    yield from (datasets_left_out(names, first) for first, names in by_system.items())


def datasets_left_out(names: Sequence[str], lacking: str) -> str:
    """Return one notice for all datasets that are left out because of the same systems."""
    verb, objects = ("is", "it") if len(names) == 1 else ("are", "them")
    return f"{', '.join(names)} {verb} left out: {lacking} was not run on {objects}"
