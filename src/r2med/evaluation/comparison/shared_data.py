"""Choose the datasets of a comparison: those that were asked for, that all systems share, and that form one group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.data.dataset_cards import groups
from r2med.data.dataset_word import DatasetWord
from r2med.evaluation.comparison.largest_group import datasets_left_out
from r2med.evaluation.comparison.one_group import of_one_group
from r2med.evaluation.measure.scores import Floats
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.records.used_labels import published_names
from r2med.foundation.core.errors import UserError, unknown


def labelled_records(
    collection: RecordCollection, measure: str, data: Sequence[str]
) -> tuple[RecordCollection, list[str], list[str]]:
    """Return the records with a measure, the names of their datasets in `data`, and a notice for what is left out.

    Datasets without the labels for the measure are left out, and so are systems without a record on any of `data`.
    """
    wanted, kept = wanted_datasets(data, collection.datasets), collection.with_measure(measure)
    without = [name for name in collection.datasets if name in wanted and name not in kept.datasets]
    if without and wanted <= set(without):
        raise UserError(
            f"{without[0]} has no labels for {measure}: choose a dataset that has them with data (--data)",
        )
    notices = [f"{name} is left out: it has no labels for {measure}" for name in without]
    if data:
        everywhere, kept = kept, kept.on(wanted)
        elsewhere = [system for system in everywhere.systems if system not in kept.systems]
        notices += [f"{system} is left out: it was not run on {', '.join(data)}" for system in elsewhere]
    return kept, [name for name in data if _members(name, kept.datasets)], notices


def shared_values(
    collection: RecordCollection, measure: str, data: Sequence[str]
) -> tuple[dict[str, tuple[str, ...]], dict[str, Floats], list[str]]:
    """Return the queries and values of the datasets that all systems share, and a notice for each other dataset."""
    queries, values = {}, {}
    by_lacking: dict[str, list[str]] = {}
    wanted = wanted_datasets(data, collection.datasets)
    for dataset, (ids, rows) in collection.values(measure).items():
        if dataset not in wanted:
            continue
        lacking = [system for system, row in zip(collection.systems, rows, strict=True) if np.isnan(row).any()]
        if lacking:
            others = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
            by_lacking.setdefault(f"{lacking[0]}{others}", []).append(dataset)
        else:
            queries[dataset], values[dataset] = ids, 100 * rows
    notices = [datasets_left_out(names, lacking) for lacking, names in by_lacking.items()]
    if not values:
        number = "both" if len(collection.systems) == 2 else f"all {len(collection.systems)}"
        raise UserError(f"no dataset has records of {number} systems: {notices[0]}")
    bases = published_names(each.record for each in collection)
    kept, left_out = of_one_group({name: bases[name] for name in values}, bool(data))
    return {name: queries[name] for name in kept}, {name: values[name] for name in kept}, [*notices, *left_out]


def wanted_datasets(data: Sequence[str], known: Sequence[str]) -> set[str]:
    """Return the chosen datasets, which may be names, groups or folders. Without any, return all datasets."""
    wanted = set() if data else set(known)
    for name in data:
        members = _members(name, known)
        if not members:
            raise unknown("dataset", name, known)
        wanted |= members
    return wanted


def _members(word: str, known: Sequence[str]) -> set[str]:
    """Return the datasets that a name, a group or a folder means."""
    return {word, *groups().get(word, ())} & set(known) or {DatasetWord.parse(word).record_name} & set(known)
