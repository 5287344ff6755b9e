"""What was read from an answer, and which of several things in a text is the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Value_co = TypeVar("Value_co", covariant=True)
Found = TypeVar("Found")

LONGEST = 20_000
"""Letters of an answer that are looked at, from its end: what was asked for stands there, and is much shorter."""


@dataclass(frozen=True)
class Reading(Generic[Value_co]):
    """What an answer says, and how often what had to be mended to read it."""

    value: Value_co
    repairs: Counter[str] = field(default_factory=Counter)


def last_full(found: Sequence[Found], size: Callable[[Found], int]) -> Found | None:
    """Return the last of those that say more than two thirds as much as the fullest; None where none says anything.

    Models think aloud before they answer, and explain themselves after: what they mention in passing is short.
    """
    most = max(map(size, found), default=0)
    return next((one for one in reversed(found) if size(one) * 3 > most * 2), None)
