"""Match ids that two tables spell differently: spreadsheets remove leading zeros of numbers and append `.0`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator

_NUMBER = re.compile(r"0*(\d+?)(?:[.,]0)?")
ROUNDED_NUMBER = re.compile(r"\d(?:[.,]\d+)?[eE]\+\d+")
"""A long number as a spreadsheet shows it. Its last digits are lost."""


class Ids(Collection[str]):
    """The ids of documents or questions. Numbers match without leading zeros if the ids stay distinct."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = dict.fromkeys(ids)
        self._by_number: dict[str, str] = {}
        for identifier in self._ids:
            if number := _number(identifier):
                if number in self._by_number:
                    self._by_number = {}
                    break
                self._by_number[number] = identifier

    def find(self, word: str) -> str | None:
        """Return the id that a word means, or None."""
        return word if word in self._ids else self._by_number.get(_number(word)) if self._by_number else None

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.find(word) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)


def _number(word: str) -> str:
    match = _NUMBER.fullmatch(word)
    return match[1] if match else ""
