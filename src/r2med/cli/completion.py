"""Shell completion: the words that can come next. It reads the names of cards and imports no heavy module."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.foundation.core.names import Kind


def systems(incomplete: str) -> list[str]:
    """Return the stages and presets that continue a word. Each stage of a system can be a word of its own."""
    from r2med.foundation.core.names import KINDS

    stages = [name for kind in KINDS for name in _named(kind, incomplete)]
    return [*dict.fromkeys(stages), *_cards("systems", incomplete)]


def expansions(incomplete: str) -> list[str]:
    """Return the methods of expansion that continue a word."""
    return _named("expand", incomplete)


def rerankers(incomplete: str) -> list[str]:
    """Return the rerankers that continue a word."""
    return _named("rerank", incomplete)


def stages(incomplete: str) -> list[str]:
    """Return the stages of any kind that continue a word."""
    from r2med.foundation.core.names import NOUNS

    return [name for kind in NOUNS for name in _named(kind, incomplete)]


def models(incomplete: str) -> list[str]:
    """Return the embedding models and cross-encoders that continue a word."""
    return [*_cards("models", incomplete), *_cards("rerankers", incomplete)]


def llms(incomplete: str) -> list[str]:
    """Return the LLMs that continue a word."""
    return _cards("llms", incomplete)


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of list that continue a word."""
    from r2med.public.catalogue_functions import KINDS_OF_LISTS

    return _matching(KINDS_OF_LISTS, incomplete)


def anything(incomplete: str) -> list[str]:
    """Return the stages, models, LLMs and datasets that continue a word."""
    from r2med.data.dataset_cards import cards

    known = [*stages(incomplete), *models(incomplete), *llms(incomplete), *_matching(cards(), incomplete)]
    return list(dict.fromkeys(known))


def suites(incomplete: str) -> list[str]:
    """Return the suites that continue a word."""
    from r2med.foundation.core.names import files_of

    return _matching(sorted(files_of("suites")), incomplete)


def datasets(incomplete: str) -> list[str]:
    """Return the datasets and groups that continue a word, which may hold several with commas."""
    from r2med.data.dataset_cards import cards, groups

    earlier, comma, word = incomplete.rpartition(",")
    known = dict.fromkeys([*cards(), *groups(), *groups()["demo"]])
    return [f"{earlier}{comma}{name}" for name in _matching(known, word)]


def _named(kind: Kind, incomplete: str) -> list[str]:
    from r2med.foundation.core.names import known_names

    return _matching(known_names(kind), incomplete)


def _cards(kind: str, incomplete: str) -> list[str]:
    from r2med.foundation.core.names import raw_cards

    return _matching(sorted(raw_cards(kind)), incomplete)


def _matching(names: Iterable[str], incomplete: str) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
