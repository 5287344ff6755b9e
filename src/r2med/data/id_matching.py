"""Match ids that two tables spell differently: spreadsheets remove leading zeros of numbers and append `.0`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

_NUMBER = re.compile(r"0*(\d+?)(?:[.,]0)?")
ROUNDED_NUMBER = re.compile(r"\d(?:[.,]\d+)?[eE]\+\d+")
"""A long number as a spreadsheet shows it. Its last digits are lost."""


class Ids(Collection[str]):
    """The ids of documents or questions. Numbers match without leading zeros if the ids stay distinct.

    Case and invisible signs do not matter either, unless two ids would become equal.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = dict.fromkeys(ids)
        self._by_number: dict[str, str] = {}
        for identifier in self._ids:
            if number := _number(identifier):
                if number in self._by_number:
                    self._by_number = {}
                    break
                self._by_number[number] = identifier

    @cached_property
    def _by_letters(self) -> dict[str, str]:
        """Ids in lower case and without invisible signs -> the id; empty if there are two."""
        found: dict[str, str] = {}
        for identifier in self._ids:
            letters = _letters(identifier)
            found[letters] = "" if letters in found else identifier
        return found

    def find(self, word: str) -> str | None:
        """Return the id that a word means, or None."""
        if word in self._ids:
            return word
        by_number = self._by_number.get(_number(word)) if self._by_number else None
        return by_number or self._by_letters.get(_letters(word)) or None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _letters(word: str) -> str:
    """Return an id in lower case and without signs that nobody sees, such as spaces of no width."""
    if not word.isascii():
        word = "".join(sign for sign in unicodedata.normalize("NFKC", word) if unicodedata.category(sign) != "Cf")
    return word.strip().casefold()


def differs_in_letters(word: str, identifier: str) -> bool:
    """Return True if two spellings of an id differ in case or invisible signs, not only in leading zeros."""
    return _letters(word) == _letters(identifier)


def _number(word: str) -> str:
    match = _NUMBER.fullmatch(word)
    return match[1] if match else ""
