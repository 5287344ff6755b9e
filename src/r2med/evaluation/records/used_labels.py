"""Which labels scored a record: those of its dataset as published, or also those of overlays."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.data.dataset import Dataset
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.record_facts import DatasetFacts
from r2med.foundation.text.plurals import counted

AS_PUBLISHED = "as published"
TESTED = "judge tested"
"""How the card of a dataset begins to speak about LLMs that passed their controls."""


def used_labels(records: Iterable[Record]) -> str:
    """Return in words which labels scored records, such as "with overlay judged (312 labels, 20 of people)"."""
    datasets = {record.dataset.name: record.dataset for record in records}
    by_overlays: dict[tuple[str, ...], list[DatasetFacts]] = {}
    for dataset in datasets.values():
        by_overlays.setdefault(overlay_names(dataset), []).append(dataset)
    if len(by_overlays) < 2:
        return "".join(_in_words(names, each) for names, each in by_overlays.items())
    lines = [f"{_in_words(names, each)} for {_names(each)}" for names, each in by_overlays.items()]
    return "; ".join(lines)


def overlay_names(dataset: DatasetFacts | Dataset) -> tuple[str, ...]:
    """Return the names of the overlays whose labels count in a dataset."""
    return tuple(overlay.name for overlay in dataset.overlays)


def published_name(dataset: DatasetFacts | Dataset) -> str:
    """Return the name of a dataset without the names of its overlays. A + in a user's own name is not an overlay."""
    return dataset.name.removesuffix("".join(f"+{name}" for name in overlay_names(dataset)))


def published_names(records: Iterable[Record]) -> dict[str, str]:
    """Return the datasets of records, each with its name without overlays."""
    return {record.dataset.name: published_name(record.dataset) for record in records}


def _in_words(names: tuple[str, ...], datasets: Iterable[DatasetFacts]) -> str:
    if not names:
        faults = [each.judge_test for each in datasets if each.judge_test and not each.judge_test.startswith(TESTED)]
        return f"{AS_PUBLISHED} ({', '.join(dict.fromkeys(faults))})" if faults else AS_PUBLISHED
    overlays = [overlay for dataset in datasets for overlay in dataset.overlays]
    labels, reviewed = (sum(getattr(each, kind) for each in overlays) for kind in ("labels", "reviewed"))
    people = f", {reviewed:,} of people" if reviewed else ""
    trust = "".join(f", judge {word}" for word in dict.fromkeys(each.trust for each in overlays if each.trust))
    noun = "overlay" if len(names) == 1 else "overlays"
    return f"with {noun} {', '.join(names)} ({counted(labels, 'label')}{people}{trust})"


def _names(datasets: Iterable[DatasetFacts]) -> str:
    return ", ".join(dataset.name for dataset in datasets)
