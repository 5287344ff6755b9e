"""The reserved names of the benchmark's datasets. Only the benchmark's data may have them."""

from __future__ import annotations

from collections.abc import Iterable

from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard, bundled_cards, demo_cards
from r2med.foundation.store import Store, digest

MIN_DISTINCT_SHARE = 0.9
"""Minimum share of distinct ids among the rows of a corpus. The card counts rows, and some sets repeat ids."""


def own_name(name: str) -> str:
    """Return the name for a user's dataset that has the same name as a dataset of the benchmark or of the demo."""
    return f"{OWN_PREFIX}{name.rpartition('/')[2]}"


def is_reserved(name: str) -> bool:
    """Return True if a name belongs to the benchmark or to the bundled demo."""
    return name in bundled_cards() or name.startswith("demo/")


def has_benchmark_counts(name: str, queries: int, positives: Iterable[int]) -> bool:
    """Return True if a dataset has as many queries and relevant documents as the benchmark's dataset of this name.

    `positives` is the number of relevant documents of each judged query.
    """
    card = bundled_cards().get(name)
    if card is None or card.counts is None:
        return False
    of_query = list(positives)
    counts = card.counts
    most = counts.most_positives or max(of_query, default=0)
    return (queries, sum(of_query), max(of_query, default=0)) == (counts.queries, counts.positives, most)


def has_benchmark_sizes(name: str, queries: int, documents: int) -> bool:
    """Return True if stated sizes can be those of the dataset of this name. Without counts on its card, any can be.

    `documents` is the number of distinct ids.
    """
    card = demo_cards().get(name) or bundled_cards().get(name)
    if card is None or card.counts is None:
        return True
    rows = card.counts.documents
    return queries == card.counts.queries and MIN_DISTINCT_SHARE * rows <= documents <= rows


def remember_fingerprint(name: str, fingerprint: str, store: Store) -> None:
    """Save the fingerprint of a benchmark dataset that was fetched at its pinned revision."""
    if fingerprint not in known_fingerprints(name, store):
        store.remember(_note(bundled_cards()[name]), {"fingerprint": fingerprint})


def known_fingerprints(name: str, store: Store) -> frozenset[str]:
    """Return the fingerprints of the dataset of this name: that of its card, and that of the data fetched here.

    It is empty if the card has none and the dataset was never loaded from the hub.
    """
    if name.startswith("demo/"):
        return frozenset({card.fingerprint} if (card := demo_cards().get(name)) else ())
    card = bundled_cards().get(name)
    if card is None:
        return frozenset()
    fetched = str((store.recall(_note(card)) or {}).get("fingerprint", ""))
    return frozenset(filter(None, (card.fingerprint, fetched)))


def is_source_of(name: str, source: str) -> bool:
    """Return True if data of this source are the dataset of this name. A card without a revision allows any commit."""
    known = source_of(name)
    return bool(source) and bool(known) and (source == known or (known.endswith("@") and source.startswith(known)))


def source_of(name: str) -> str:
    """Return the source of the benchmark's dataset of this name as REPOSITORY@REVISION."""
    card = bundled_cards().get(name)
    return f"{card.hub.repository}@{card.hub.revision}" if card and card.hub else ""


def _note(card: DatasetCard) -> str:
    return digest(["benchmark fingerprint", card.name, source_of(card.name)])
