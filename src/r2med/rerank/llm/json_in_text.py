"""JSON values wherever they stand in a text: in prose, in code fences, one after the other, with the slips of LLMs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

FAILED = 300
"""Brackets that are tried in vain as the start of a value: a text of nothing but brackets must not take minutes."""

_OPENING = re.compile(r"[{\[]")
_SLIPS = (
    (re.compile(r",(?=\s*[}\]])"), ""),  # a comma after the last one
    (re.compile(r"([{,]\s*)(\d+)(?=\s*:)"), r'\1"\2"'),  # numbers as keys, without quotes
    (re.compile(r"'(\w+)'"), r'"\1"'),  # Python's quotes
)


class Members(tuple[tuple[str, Any], ...]):
    """A JSON object: its members in their order, keys that come twice included."""


@dataclass(frozen=True)
class Found:
    """A value and where it stands."""

    value: Any
    start: int
    end: int


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_int=float, parse_constant=lambda _: None)


def mended(text: str) -> str:
    """Return the text with slips in its JSON put right."""
    for slip, right in _SLIPS:
        text = slip.sub(right, text)
    return text


def values(text: str) -> Iterator[Found]:
    """Yield every object and list that is not part of another, in their order. All numbers are floats."""
    place, failed = 0, 0
    while (opening := _OPENING.search(text, place)) and failed < FAILED:
        place = opening.start()
        try:
            value, end = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError):
            place, failed = place + 1, failed + 1
            continue
        yield Found(value, place, end)
        place = end


def members(value: Any, depth: int = 20) -> Iterator[Any]:
    """Yield a value and all that lies in it, from the outside in."""
    yield value
    inside = [entry for _, entry in value] if isinstance(value, Members) else value if isinstance(value, list) else ()
    for entry in inside if depth else ():
        yield from members(entry, depth - 1)
