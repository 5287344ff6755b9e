"""Datasets as public functions take them: a name, a folder, a `Dataset`, or several of these."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.loading import load_dataset
from r2med.data.locating import names, unambiguous
from r2med.data.overlays import Overlay, add_labels, given_overlays
from r2med.foundation.core.errors import refuse_table
from r2med.foundation.core.flags import as_list
from r2med.foundation.store import Store

GivenData = str | Path | Dataset
"""A dataset, its name, or its folder."""


def load(name_or_path: str | Path, store: Store | None = None) -> Dataset:
    """Load one dataset by its name, `demo/NAME`, `hub:ORG/NAME`, `irds:ID` of ir_datasets, or the path of a folder.

    `NAME+FILE.jsonl` adds the labels of an overlay.
    """
    refuse_table(
        name_or_path, "a dataset", "a name or a folder; for tables in memory: r2med.Dataset.of(queries, corpus, qrels)"
    )
    return load_dataset(unambiguous(name_or_path), store)


def loaded(given: GivenData, store: Store | None = None) -> Dataset:
    """Return the dataset, which is loaded if its name or folder is given."""
    return given if isinstance(given, Dataset) else load(given, store)


def given_data(data: GivenData | Collection[GivenData] | None) -> list[GivenData]:
    """Return datasets as a list. Raises UserError for a table."""
    refuse_table(data, "data", "a dataset, its name or folder; for tables in memory: r2med.Dataset.of(...)")
    return [given if isinstance(given, Dataset) else unambiguous(given) for given in as_list(data)]


def each_dataset(data: GivenData | Collection[GivenData] | None) -> list[GivenData]:
    """Return the datasets of names, groups, folders and objects, each once. A group is all of its datasets."""
    found: list[GivenData] = []
    for given in given_data(data):
        found += [given] if isinstance(given, Dataset) else [name for name in names(given) if name not in found]
    return found


def dataset_names(words: str | Path | Collection[str | Path]) -> list[str]:
    """Return the datasets that names, groups and folders mean, each once."""
    return list(dict.fromkeys(name for word in as_list(words) for name in names(unambiguous(word))))


def data_words(data: GivenData | Collection[GivenData]) -> list[str]:
    """Return the names or folders of datasets, for functions that only look for records on them."""
    return [given.name if isinstance(given, Dataset) else str(given) for given in given_data(data)]


def with_overlays(
    dataset: str | Path | Dataset,
    overlays: str | Path | Overlay | Sequence[str | Path | Overlay],
) -> Dataset:
    """Return the dataset with the labels of overlays, called NAME+OVERLAY.

    An overlay without labels for this dataset changes nothing. Raises UserError if an overlay names a query or document
    that the dataset does not have.
    """
    return add_labels(loaded(dataset), given_overlays(overlays))
