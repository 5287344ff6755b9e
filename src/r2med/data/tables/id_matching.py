"""Match ids that two tables spell differently: spreadsheets remove leading zeros of numbers and rewrite dates."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

_NUMBER = re.compile(r"0*(\d+?)(?:[.,]0)?")
_TIME = r"(?:[T ](\d{1,2}:\d\d)(?::00(?:\.0+)?)?)?"
_YEAR_FIRST = re.compile(rf"(\d{{4}})[-/.年](\d{{1,2}})[-/.月](\d{{1,2}})日?{_TIME}")
_DAY_FIRST = re.compile(rf"(\d{{1,2}})\.(\d{{1,2}})\.(\d{{4}}){_TIME}")
"""A date with dots. A date with slashes, such as 03/04/2024, can be of March or of April, and is not read."""
ROUNDED_NUMBER = re.compile(r"\d(?:[.,]\d+)?[eE]\+\d+")
"""A long number as a spreadsheet shows it. Its last digits are lost."""


class Ids(Collection[str]):
    """The ids of documents or questions. Numbers match without leading zeros if the ids stay distinct.

    Case, invisible signs and the way to write a date do not matter either, unless two ids would become equal.
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

    @cached_property
    def _by_date(self) -> dict[str, str]:
        """Ids that are dates, written with the year first -> the id; empty if there are two."""
        found: dict[str, str] = {}
        for identifier in self._ids:
            if date := _date(identifier):
                found[date] = "" if date in found else identifier
        return found

    def find(self, word: str) -> str | None:
        """Return the id that a word means, or None."""
        if word in self._ids:
            return word
        by_number = self._by_number.get(_number(word)) if self._by_number else None
        return by_number or self._by_letters.get(_letters(word)) or self._by_date.get(_date(word)) or None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _letters(word: str) -> str:
    """Return an id in lower case and without invisible characters, such as spaces of no width."""
    if not word.isascii():
        word = "".join(sign for sign in unicodedata.normalize("NFKC", word) if unicodedata.category(sign) != "Cf")
    return word.strip().casefold()


def _date(word: str) -> str:
    """Return a date with the year first, and its time unless that is midnight; empty if a word is not a date."""
    if match := _YEAR_FIRST.fullmatch(word):
        year, month, day, time = match.groups()
    elif match := _DAY_FIRST.fullmatch(word):
        day, month, year, time = match.groups()
    else:
        return ""
    clock = "" if time is None or time.zfill(5) == "00:00" else f" {time.zfill(5)}"
    return f"{year}-{int(month):02}-{int(day):02}{clock}"


def difference_of_ids(word: str, identifier: str) -> str:
    """Return in which way two spellings of an id differ."""
    if _letters(word) == _letters(identifier):
        return "case or invisible signs"
    return "the way to write a date" if _date(word) else "leading zeros"


def _number(word: str) -> str:
    match = _NUMBER.fullmatch(word)
    return match[1] if match else ""
