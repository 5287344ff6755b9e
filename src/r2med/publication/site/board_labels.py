"""Add to a board what overlays change: records scored again, and who said what of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.overlays import Overlay, add_labels
from r2med.evaluation.records.collection import checked
from r2med.evaluation.records.relabelled import relabelled
from r2med.evaluation.records.stored_records import RecordCollection, with_rankings
from r2med.foundation.core.errors import UserError

PERSON = "a person"
"""Shown instead of the name of a reviewer, because boards are published."""

Said = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
"""Query -> document -> its labels, in the form of the data files: who said it, the grade, and why."""


@dataclass(frozen=True)
class LabelledRecords:
    """Records as published and with overlays, and what belongs to them."""

    collection: RecordCollection
    datasets: Mapping[str, Dataset]
    """The datasets on this machine, also those with overlays."""
    said: Mapping[str, Said] = field(default_factory=dict)
    """Dataset with overlays -> who said what."""


def with_board_labels(
    collection: RecordCollection, datasets: Mapping[str, Dataset], overlays: Sequence[Overlay]
) -> LabelledRecords:
    """Return the records with those that the overlays label added. Records without a ranking stay as published.

    Raises UserError if a labelled dataset is not on this machine, or if the overlays label no dataset of the records.
    """
    if not overlays:
        return LabelledRecords(collection, datasets)
    wanted = {name for overlay in overlays for name in overlay.datasets if name in collection.datasets}
    for name in wanted - set(datasets):
        raise UserError(
            f"the overlays label {name}, whose documents are not on this machine: fetch it with r2med data fetch "
            f"{name}, or give its folder with data (--data)",
        )
    again = relabelled(with_rankings(collection), overlays, datasets)
    new = [kept for key, kept in again.cells.items() if key not in collection.cells]
    labelled = {name: add_labels(datasets[name], overlays) for name in datasets if name in wanted}
    labelled = {name: dataset for name, dataset in labelled.items() if dataset.overlays}
    return LabelledRecords(
        checked([*collection, *new], max_failures=1.0),
        {**datasets, **{dataset.name: dataset for dataset in labelled.values()}},
        {dataset.name: _said(overlays, name) for name, dataset in labelled.items()},
    )


def _said(overlays: Sequence[Overlay], name: str) -> Said:
    latest = {
        (label.query, label.document, label.judge, label.reviewer): label
        for overlay in overlays
        for label in overlay.of(name)
    }
    said: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for label in latest.values():
        line = {"who": label.judge or PERSON, "grade": label.grade, "why": label.why}
        said.setdefault(label.query, {}).setdefault(label.document, []).append(line)
    return said
