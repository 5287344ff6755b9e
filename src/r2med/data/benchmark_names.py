"""The reserved names of the benchmark's datasets. Only data with the fingerprint of a dataset may have its name."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.data.dataset_cards import OWN_PREFIX, DatasetCard, bundled_cards, demo_cards
from r2med.foundation.store import Store, digest

MIN_DISTINCT_SHARE = 0.9
"""Minimum share of distinct ids among the rows of a corpus. The card counts rows, and some sets repeat ids."""


def reserved_card(name: str) -> DatasetCard | None:
    """Return the card of a dataset of the benchmark or of the demo; None for other names."""
    return demo_cards().get(name) or bundled_cards().get(name)


def is_reserved(name: str) -> bool:
    """Return True if a name belongs to the benchmark or to the bundled demo."""
    return name in bundled_cards() or name.startswith("demo/")


def own_name(name: str) -> str:
    """Return the name of a user's data: own/NAME for a reserved name. Only their fingerprint can confirm that name."""
    return f"{OWN_PREFIX}{name.rpartition('/')[2]}" if is_reserved(name) else name


def honest_name(name: str, fingerprint: str, store: Store) -> str:
    """Return the name for data with this fingerprint: a reserved name only if it is that of the known dataset."""
    return name if fingerprint in known_fingerprints(name, store) else own_name(name)


def known_fingerprints(name: str, store: Store) -> frozenset[str]:
    """Return the fingerprints of the dataset of this name: that of its card, and that of the data fetched here.

    It is empty if the card has none and the dataset was never loaded from the hub.
    """
    card = reserved_card(name)
    fetched = (store.recall(_note(card)) or {}).get("fingerprint", "") if card else ""
    return frozenset(filter(None, (card.fingerprint, str(fetched)))) if card else frozenset()


def remember_fingerprint(name: str, fingerprint: str, store: Store) -> None:
    """Save the fingerprint of a benchmark dataset that was fetched at its pinned revision."""
    if fingerprint not in known_fingerprints(name, store):
        store.remember(_note(bundled_cards()[name]), {"fingerprint": fingerprint})


def fits_card(name: str, queries: int, documents: int, positives: Sequence[int] | None = None) -> bool:
    """Return True if stated numbers can be those of the dataset of this name. Without counts on its card, any can be.

    `documents` is the number of distinct ids, and `positives` the number of relevant documents of each judged query.
    """
    card = reserved_card(name)
    if card is None or (counts := card.counts) is None:
        return True
    if queries != counts.queries or not MIN_DISTINCT_SHARE * counts.documents <= documents <= counts.documents:
        return False
    most = max(positives or [0])
    return positives is None or (sum(positives), most) == (counts.positives, counts.most_positives or most)


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
