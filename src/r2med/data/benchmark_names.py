"""The names of the known datasets. Only data from the source of a known dataset may have its name."""

from __future__ import annotations

from r2med.data.dataset_cards import OWN_PREFIX, bundled_cards, demo_cards


def is_reserved(name: str) -> bool:
    """Return True if a name belongs to the benchmark or to the bundled demo."""
    return name in bundled_cards() or name.startswith("demo/")


def is_known_set(name: str, source: str, fingerprint: str) -> bool:
    """Return True if data are the known dataset of this name: from the source of its card, or with its demo's texts."""
    if name in demo_cards():
        return fingerprint == demo_cards()[name].fingerprint
    return is_source_of(name, source)


def own_name(name: str, source: str = "") -> str:
    """Return the name of data from a source: own/NAME for a reserved name, unless they come from its card's source."""
    return f"{OWN_PREFIX}{name.rpartition('/')[2]}" if is_reserved(name) and not is_source_of(name, source) else name


def is_source_of(name: str, source: str) -> bool:
    """Return True if data of this source are the dataset of this name. A card without a revision allows any commit."""
    known = source_of(name)
    return bool(source) and bool(known) and (source == known or (known.endswith("@") and source.startswith(known)))


def source_of(name: str) -> str:
    """Return the source of the benchmark's dataset of this name as REPOSITORY@REVISION."""
    card = bundled_cards().get(name)
    return f"{card.hub.repository}@{card.hub.revision}" if card and card.hub else ""
