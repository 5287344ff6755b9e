"""Find the datasets of records on this machine, by name or in folders that the user gives."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from r2med.data import Dataset
from r2med.data import names as dataset_words
from r2med.data.dataset_cards import cards
from r2med.data.dataset_word import DatasetWord, GivenData
from r2med.data.hub import is_fetched
from r2med.data.irds import PREFIX
from r2med.data.loading import load_dataset
from r2med.evaluation.records.record_facts import DatasetFacts
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.evaluation.records.used_labels import published_name
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, default_store

log = logging.getLogger("r2med")


def typed_places(data: Sequence[GivenData], store: Store | None = None) -> dict[str, str]:
    """Return name -> folder for the dataset folders that the user typed."""
    return {
        name: str(place.folder or name) if isinstance(place, Dataset) else place
        for name, place in given_places(data, store).items()
    }


def given_places(data: Sequence[GivenData], store: Store | None = None) -> dict[str, str | Dataset]:
    """Return name -> the name, the folder or the dataset that the user gave."""
    places: dict[str, str | Dataset] = {}
    for given in data:
        if isinstance(given, Dataset):
            places[given.name] = given
        else:
            places |= {DatasetWord.parse(word).record_name: word for word in dataset_words(given)}
    return places


def local_datasets(
    collection: RecordCollection, data: Sequence[GivenData], store: Store | None = None
) -> dict[str, Dataset]:
    """Return the datasets that are on this machine and have not changed since the records were made."""
    store = store or default_store()
    places = given_places(data, store)
    datasets, missing = {}, []
    for name in collection.datasets:
        facts = next(kept.record.dataset for kept in collection if kept.record.dataset.name == name)
        if facts.overlays and name not in places:
            words = "+".join([published_name(facts), *(f"{overlay.name}.jsonl" for overlay in facts.overlays)])
            missing.append(f"{name}: give it as data with its files of labels: {words}")
            continue
        try:
            dataset = _local(places[name] if name in places else _plain(name), store)
        except UserError as error:
            missing.append(f"{name}: {error}")
            continue
        if dataset.fingerprint == facts.fingerprint:
            datasets[name] = dataset
        else:
            missing.append(f"{name}: it has changed since its records were made")
    if missing:
        more = f" ({len(missing) - 1} more)" if len(missing) > 1 else ""
        log.info("no texts of %s%s", missing[0], more)
    return datasets


def dataset_here(facts: DatasetFacts, store: Store) -> Dataset | None:
    """Return the dataset of a record if it is on this machine and has not changed; None otherwise."""
    try:
        dataset = _local(_plain(facts.name), store)
    except UserError:
        return None
    return dataset if dataset.fingerprint == facts.fingerprint else None


def _plain(name: str) -> str:
    """Return the dataset name of a record. Raises UserError if an entry uses a path or a download as the name."""
    path = Path(name)
    if name.startswith((PREFIX, "~")) or path.is_absolute() or ".." in path.parts:
        raise UserError("this is not the name of a dataset: give its folder as data")
    return name


def _local(word: str | Dataset, store: Store) -> Dataset:
    """Return a dataset of this machine. Nothing is downloaded, because making a board must not fetch data."""
    card = cards().get(word) if isinstance(word, str) else None
    if card and card.hub and not card.folder and not is_fetched(card.hub, store):
        raise UserError(f"it is not on this machine: fetch it with r2med data fetch {word}, or give its folder as data")
    return word if isinstance(word, Dataset) else load_dataset(word, store)
