"""The languages that translations are made from and into: scripts, numbers and negations, from a data file."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from r2med.foundation.core.errors import unknown


@dataclass(frozen=True)
class Language:
    """A language, its numbers and its negations. Patterns ignore case."""

    name: str
    script: tuple[str, ...]
    """First words of the Unicode names of its letters."""
    spaced: bool
    """False if words are written without spaces between them."""
    decimal: str
    negation: re.Pattern[str]
    half_negation: re.Pattern[str]
    """Words that negate in form but not always in translation, such as "discomfort"."""
    spelled: Mapping[re.Pattern[str], str]
    """Forms that are replaced before numbers are compared, such as bid."""
    numbers: Mapping[str, int]
    """Numbers in words."""

    @classmethod
    def of(cls, name: str, row: Mapping[str, Any]) -> Language:
        """Return the language of a row of the data file."""
        numbers = (pair.split("=") for pair in row.get("numbers", "").split())
        halves = sorted(row["half_negations"], key=len, reverse=True)  # longer words win
        return cls(
            name,
            script=tuple(row["script"]),
            spaced=row["spaced"],
            decimal=row.get("decimal", "."),
            negation=_pattern("|".join(row["negations"])),
            half_negation=_pattern("|".join(halves)),
            spelled={_pattern(form): plain for form, plain in row.get("spelled", {}).items()},
            numbers={word: int(value) for word, value in numbers},
        )

    def writes(self, letter: str) -> bool:
        """Return True if the letter belongs to the script of this language."""
        return letter.isalpha() and _script_word(letter) in self.script

    def letters(self, text: str) -> int:
        """Return the number of letters of a text in the script of this language."""
        return sum(map(self.writes, text))


def _pattern(form: str) -> re.Pattern[str]:
    return re.compile(form, re.IGNORECASE)


@cache
def _script_word(letter: str) -> str:
    name = unicodedata.name(letter, "")
    return name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]


@cache
def _languages() -> dict[str, Language]:
    table = tomllib.loads((files(__package__) / "languages.toml").read_text("utf-8"))
    return {name: Language.of(name, row) for name, row in table.items()}


def language(name: str) -> Language:
    """Return a language by its English name. Raises UserError if it is not in the data file."""
    if name not in _languages():
        raise unknown("language of translations", name, list(_languages()))
    return _languages()[name]
