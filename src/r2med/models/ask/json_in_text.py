"""Find JSON values in the text of an LLM, also in prose or code fences and with common mistakes, and choose among them.

An answer may be any text, so nothing here raises an exception or takes long.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

Value_co = TypeVar("Value_co", covariant=True)
Candidate = TypeVar("Candidate")

VERSION = 2
"""Version of the parsing rules. It is part of the record: the journal keeps raw answers, so other rules can give
another ranking."""

MAX_CHARACTERS = 20_000
"""Characters read from the end of an answer. The requested value is there, and is much shorter."""

MAX_FAILED_BRACKETS = 300
"""Brackets that may fail as the start of a value before the search stops, counted from the end of the text. A text of
only brackets must not take minutes."""

_OPENING = re.compile(r"[{\[]")
_SLIPS = (
    (re.compile(r",(?=\s*[}\]])"), ""),  # a comma after the last member
    (re.compile(r"([{,]\s*)(\d+)(?=\s*:)"), r'\1"\2"'),  # numbers as keys, without quotes
    (re.compile(r"'(\w+)'"), r'"\1"'),  # Python's quotes
)


@dataclass(frozen=True)
class Parsed(Generic[Value_co]):
    """The value of an answer, and how often each kind of repair was needed to read it."""

    value: Value_co
    repairs: Counter[str] = field(default_factory=Counter)


class Members(tuple[tuple[str, Any], ...]):
    """The members of a JSON object in their order, including repeated keys."""


@dataclass(frozen=True)
class Located:
    """A JSON value and its position in the text."""

    value: Any
    start: int
    end: int


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=float, parse_constant=lambda _: None)


def mended(text: str) -> str:
    """Return the text with common mistakes in its JSON corrected."""
    for slip, right in _SLIPS:
        text = slip.sub(right, text)
    return text


def values(text: str) -> list[Located]:
    """Return every object and list that is not inside another, in order. All numbers are floats.

    The text is read from its end, where the requested value is.
    """
    located: list[Located] = []  # the last one first
    failed = 0
    for opening in reversed([*_OPENING.finditer(text)]):
        start = opening.start()
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            failed += 1
            if failed == MAX_FAILED_BRACKETS:
                break
            continue
        while located and located[-1].start < end:
            located.pop()  # it is inside this value
        located.append(Located(value, start, end))
    return located[::-1]


def members(value: Any, depth: int = 20) -> Iterator[Any]:
    """Yield a value and all values inside it, from the outside in."""
    yield value
    inside = [entry for _, entry in value] if isinstance(value, Members) else value if isinstance(value, list) else ()
    for entry in inside if depth else ():
        yield from members(entry, depth - 1)


def last_full(candidates: Sequence[Candidate], size: Callable[[Candidate], int]) -> Candidate | None:
    """Return the last candidate that is more than two thirds as large as the largest; None if all are empty.

    Models think aloud before they answer and explain themselves afterwards. What they mention in passing is short.
    """
    most = max(map(size, candidates), default=0)
    return next((one for one in reversed(candidates) if size(one) * 3 > most * 2), None)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield every JSON object of an answer, the last one first, since models think aloud before they answer."""
    end = text[-MAX_CHARACTERS:]
    for form in dict.fromkeys((end, mended(end))):
        for located in reversed(values(form)):
            if isinstance(located.value, Members):
                yield dict(located.value)
