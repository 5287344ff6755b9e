"""The languages that translations are checked in: scripts, decimal signs and cues of negation, from a data file."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files

from r2med.foundation.core.errors import unknown


@dataclass(frozen=True)
class Language:
    """A language and what the checks need to know about it."""

    name: str
    script: tuple[str, ...]
    """First words of the Unicode names of its letters."""
    spaced: bool
    """False if words are written without spaces between them."""
    negations: tuple[str, ...]
    half_negations: tuple[str, ...]
    """Words that negate in form but not always in translation, such as "discomfort"."""
    left: str
    right: str
    """Patterns of the words for the two sides."""
    decimal: str = "."

    @cached_property
    def negation(self) -> re.Pattern[str]:
        """Pattern of the cues of negation."""
        return re.compile("|".join(self.negations), re.IGNORECASE)

    @cached_property
    def half_negation(self) -> re.Pattern[str]:
        """Pattern of the words that negate only in form. Longer words come first, so that they win."""
        return re.compile("|".join(sorted(self.half_negations, key=len, reverse=True)), re.IGNORECASE)

    def sides(self, text: str) -> frozenset[str]:
        """Return the sides, left or right, that a text names."""
        patterns = {"left": self.left, "right": self.right}
        return frozenset(side for side, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE))

    def writes(self, letter: str) -> bool:
        """Return True if the letter belongs to the script of this language."""
        return letter.isalpha() and _script_word(letter) in self.script

    def letters(self, text: str) -> int:
        """Return the number of letters of a text in the script of this language."""
        return sum(map(self.writes, text))


@cache
def _script_word(letter: str) -> str:
    name = unicodedata.name(letter, "")
    return name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").partition(" ")[0]


@cache
def _languages() -> dict[str, Language]:
    table = tomllib.loads((files(__package__) / "languages.toml").read_text("utf-8"))
    return {
        name: Language(
            name,
            script=tuple(row["script"]),
            spaced=row["spaced"],
            negations=tuple(row["negations"]),
            half_negations=tuple(row["half_negations"]),
            left=row["left"],
            right=row["right"],
            decimal=row.get("decimal", "."),
        )
        for name, row in table.items()
    }


def language_names() -> list[str]:
    """Return the names of all languages."""
    return list(_languages())


def language(name: str) -> Language:
    """Return a language by its English name. Raises UserError if it is not in the data file."""
    if name not in _languages():
        raise unknown("language of translations", name, language_names())
    return _languages()[name]
