"""Finding values in what an LLM wrote: JSON in prose or code fences, with the slips of LLMs, and which of them counts.

Nothing here raises, and everything ends soon: an answer may be anything.
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

VERSION = 1
"""Of the parsing. Goes into the record: what is journaled are raw answers, so another reading is another order."""

LONGEST = 20_000
"""Characters of an answer that are read, from its end: what was asked for stands there, and is much shorter."""

FAILED = 300
"""Brackets that are tried in vain as the start of a value: a text of nothing but brackets must not take minutes."""

_OPENING = re.compile(r"[{\[]")
_SLIPS = (
    (re.compile(r",(?=\s*[}\]])"), ""),  # a comma after the last one
    (re.compile(r"([{,]\s*)(\d+)(?=\s*:)"), r'\1"\2"'),  # numbers as keys, without quotes
    (re.compile(r"'(\w+)'"), r'"\1"'),  # Python's quotes
)


@dataclass(frozen=True)
class Parsed(Generic[Value_co]):
    """What an answer says, and how often what had to be mended to read it."""

    value: Value_co
    repairs: Counter[str] = field(default_factory=Counter)


class Members(tuple[tuple[str, Any], ...]):
    """A JSON object: its members in their order, keys that come twice included."""


@dataclass(frozen=True)
class Located:
    """A JSON value and where it stands in the text."""

    value: Any
    start: int
    end: int


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=float, parse_constant=lambda _: None)


def mended(text: str) -> str:
    """Return the text with slips in its JSON put right."""
    for slip, right in _SLIPS:
        text = slip.sub(right, text)
    return text


def values(text: str) -> Iterator[Located]:
    """Yield every object and list that is not part of another, in their order. All numbers are floats."""
    position, failed = 0, 0
    while (opening := _OPENING.search(text, position)) and failed < FAILED:
        position = opening.start()
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position, failed = position + 1, failed + 1
            continue
        yield Located(value, position, end)
        position = end


def members(value: Any, depth: int = 20) -> Iterator[Any]:
    """Yield a value and all that lies in it, from the outside in."""
    yield value
    inside = [entry for _, entry in value] if isinstance(value, Members) else value if isinstance(value, list) else ()
    for entry in inside if depth else ():
        yield from members(entry, depth - 1)


def last_full(candidates: Sequence[Candidate], size: Callable[[Candidate], int]) -> Candidate | None:
    """Return the last of those that say more than two thirds as much as the fullest; None where none says anything.

    Models think aloud before they answer, and explain themselves after: what they mention in passing is short.
    """
    most = max(map(size, candidates), default=0)
    return next((one for one in reversed(candidates) if size(one) * 3 > most * 2), None)


def json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield every JSON object of an answer, the last first: models think aloud before they answer."""
    end = text[-LONGEST:]
    for form in dict.fromkeys((end, mended(end))):
        for located in reversed(list(values(form))):
            if isinstance(located.value, Members):
                yield dict(located.value)
