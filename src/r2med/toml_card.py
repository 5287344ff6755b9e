"""Reading a card: TOML in, a validated value out; a fault is one line with its file and field."""

from __future__ import annotations

import tomllib
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from r2med.errors import UserError, nearest

if TYPE_CHECKING:
    from pydantic import BaseModel

CardType = TypeVar("CardType", bound="BaseModel")


def read_toml(file: Traversable | Path) -> dict[str, Any]:
    """Return what a TOML file says."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not a TOML card: {error}") from None


def validated(card: type[CardType], content: dict[str, Any], file: Traversable | Path) -> CardType:
    """Return the card that the content makes."""
    from pydantic import ValidationError

    try:
        return card(**content)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        said = first["msg"].replace("a valid tuple", "a list")  # TOML knows no other
        hint = nearest(field, card.model_fields) if first["type"] == "extra_forbidden" else ""
        raise UserError(f"{file}: {field}: {said}{hint}") from None
