"""Find ids that two tables spell differently: spreadsheets remove leading zeros, and copied ids bring hidden signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

_NUMBER = re.compile(r"0*(\d+?)(?:[.,]0)?")
ROUNDED_NUMBER = re.compile(r"\d(?:[.,]\d+)?[eE]\+\d+")
"""A long number as a spreadsheet shows it. Its last digits are lost."""


class Ids(Collection[str]):
    """The ids of documents or questions.

    They contain a word in any spelling, so that a column of ids is recognised and the import can name the difference.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = dict.fromkeys(ids)

    @cached_property
    def _by_spelling(self) -> dict[str, str]:
        """Plain spelling -> the id; empty if several ids have it."""
        by_spelling: dict[str, str] = {}
        for identifier in self._ids:
            spelling = _spelling(identifier)
            by_spelling[spelling] = "" if spelling in by_spelling else identifier
        return by_spelling

    def find(self, word: str) -> str | None:
        """Return the id that a word means, which may be spelled in another way, or None."""
        return word if word in self._ids else self._by_spelling.get(_spelling(word)) or None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def difference_of_ids(word: str, identifier: str) -> str:
    """Return in which way two spellings of an id differ."""
    if _letters(word) == _letters(identifier):
        return "case or invisible signs"
    return "leading zeros" if word.isdecimal() and identifier.isdecimal() else "a decimal zero"


def _spelling(word: str) -> str:
    """Return an id in lower case and without invisible signs, or a number without zeros around it."""
    letters = _letters(word)
    number = _NUMBER.fullmatch(letters)
    return number[1] if number else letters


def _letters(word: str) -> str:
    """Return an id in lower case and without invisible characters, such as spaces of no width."""
    if not word.isascii():
        word = "".join(sign for sign in unicodedata.normalize("NFKC", word) if unicodedata.category(sign) != "Cf")
    return word.strip().casefold()
