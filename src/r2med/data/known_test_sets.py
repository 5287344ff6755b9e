"""Known test sets: the datasets of cards, and the demo. Models that were trained with them cannot be tested on them."""

from __future__ import annotations

from collections.abc import Iterator

from r2med.data.benchmark_names import is_known_set
from r2med.data.dataset import Dataset
from r2med.data.dataset_cards import bundled_cards, cards, demo_cards
from r2med.data.hub import is_fetched
from r2med.foundation.store import Store


def known_test_set(dataset: Dataset) -> str:
    """Return the known test set that a dataset is, by its source or its fingerprint; empty if it is not one."""
    if is_known_set(dataset.name, dataset.source, dataset.fingerprint):
        return dataset.name
    every_card = {**demo_cards(), **cards()}
    return next((name for name, card in every_card.items() if card.fingerprint == dataset.fingerprint), "")


def all_test_sets(store: Store) -> Iterator[tuple[str, bool]]:
    """Yield the name of each known test set, and True if it is on this machine, so that loading needs no network."""
    yield from ((name, True) for name in sorted(demo_cards()))
    for name, card in sorted(bundled_cards().items()):
        by_hand = bool(card.by_hand) and (store.root / "by-hand" / name).is_dir()
        yield name, by_hand or (card.hub is not None and is_fetched(card.hub, store))
