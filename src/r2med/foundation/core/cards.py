"""Cards: TOML files that declare a model, an LLM, a method or a dataset. One catalogue reads all kinds of cards."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from r2med.foundation.core import plugins
from r2med.foundation.core.errors import UserError, checked_name, explained, unknown

if TYPE_CHECKING:
    from pydantic import BaseModel

CardType = TypeVar("CardType", bound="BaseModel")

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+) × )?(\d+(?:\.\d+)?)([MBT])(?![A-Za-z])", re.IGNORECASE)
_UNITS = {"M": 1e6, "B": 1e9, "T": 1e12}


def parameter_count(stated: str) -> float | None:
    """Return the number of parameters in a card's `parameters` or in a model name: 220 million for "2 × 110M".

    None if it states no size.
    """
    match = _SIZE.search(stated)
    return round(int(match[1] or 1) * float(match[2]) * _UNITS[match[3].upper()]) if match else None


class Catalogue(Mapping[str, CardType], Generic[CardType]):
    """All cards of one kind by name, from this package, plugins and R2MED_PLUGINS. They are read when first used.

    A card may have `[variants.NAME]` tables, which change some of its fields. The name of a variant is CARD:NAME.
    """

    def __init__(self, kind: str, card: type[CardType], noun: str, more: str = "") -> None:
        self.kind = kind
        self.noun = noun
        self._card = card
        self._more = more
        self._read = cache(lambda plugin_folders, states: self._read_all(plugin_folders))

    def card(self, name: str) -> CardType:
        """Return the card of a name. Raises UserError if no card has this name."""
        if name not in self:
            raise unknown(self.noun, name, self, self._more)
        return self[name]

    def __getitem__(self, name: str) -> CardType:
        return self._cards[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cards)

    def __len__(self) -> int:
        return len(self._cards)

    @property
    def _cards(self) -> Mapping[str, CardType]:
        # Uses the environment and the user's files as they are now. A process may change them, as notebooks do.
        return self._read(os.environ.get("R2MED_PLUGINS", ""), plugins.own_file_states(self.kind))

    def _read_all(self, plugin_folders: str) -> Mapping[str, CardType]:
        cards: dict[str, CardType] = {}
        for name, file in sorted(plugins.files(self.kind, ".toml").items()):
            try:
                cards |= read_cards(self._card, file, checked_name(name, self.noun))
            except UserError as error:
                plugins.leave_out(file, self.kind, error)
        return cards


def read_cards(card: type[CardType], file: Traversable | Path, name: str) -> dict[str, CardType]:
    """Return the card of a file and its variants, by name."""
    content = read_toml(file)
    variants = content.pop("variants", {})
    cards = {name: validated(card, {"name": name, **content}, file)}
    if not isinstance(variants, dict) or not all(isinstance(changes, dict) for changes in variants.values()):
        raise UserError(f"{file}: variants are tables, as in [variants.published]")
    for variant, changes in variants.items():
        changed = {"name": name, "variant": variant, **_merged(content, changes)}
        cards[f"{name}:{variant}"] = validated(card, changed, file)
    return cards


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for field, value in changes.items():
        merged[field] = _merged(base.get(field, {}), value) if isinstance(value, dict) else value
    return merged


def read_toml(file: Traversable | Path, kind: str = "card") -> dict[str, Any]:
    """Return the content of a TOML file. Raises UserError, with the kind of file, if it is not TOML."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except RecursionError:
        raise UserError(f"{file}: not a TOML {kind}: it is nested too deeply") from None
    except ValueError as error:  # wrong TOML, wrong UTF-8, or an integer with thousands of digits
        raise UserError(f"{file}: not a TOML {kind}: {error}") from None


def validated(card: type[CardType], content: Mapping[str, Any], file: Traversable | Path) -> CardType:
    """Return the card with this content. Raises UserError that names the file and the field if the content is wrong."""
    from pydantic import ValidationError

    try:
        return card(**content)
    except ValidationError as error:
        raise UserError(f"{file}: {explained(error, card.model_fields)}") from None
