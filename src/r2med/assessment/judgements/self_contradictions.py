"""How often a judge that was asked several times contradicts itself, by what it said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import permutations

from r2med.data.overlays import OverlayLabel


@dataclass(frozen=True)
class SelfContradiction:
    """What a judge says in other repeats about the passages to which it once gave one answer."""

    judge: str
    said: str
    """The answer."""
    times: int
    """Number of times that it gave this answer."""
    other_word: float
    """Share of its other answers about the same passages that are not the same."""
    other_side: float
    """Share of them that say yes instead of no, or no instead of yes."""


def self_contradictions(labels: Iterable[OverlayLabel], words: Mapping[str, object]) -> list[SelfContradiction]:
    """Return a line for each judge and each of its answers, in the order of `words`; empty without repeats.

    A grade above 0 is a yes.
    """
    said: dict[tuple[str, str, str, str], list[OverlayLabel]] = {}
    for label in labels:
        if label.judge:
            said.setdefault((label.judge, label.dataset, label.query, label.document), []).append(label)
    times, compared, words_differ, sides_differ = (Counter[tuple[str, str]]() for _ in range(4))
    for (judge, *_), given in said.items():
        times.update((judge, each.said) for each in given)
        for one, other in permutations(given, 2):
            compared[judge, one.said] += 1
            words_differ[judge, one.said] += one.said != other.said
            sides_differ[judge, one.said] += (one.grade > 0) != (other.grade > 0)
    order = [(judge, word) for judge in dict.fromkeys(key[0] for key in said) for word in words]
    return [
        SelfContradiction(*key, times[key], words_differ[key] / compared[key], sides_differ[key] / compared[key])
        for key in order
        if compared[key]
    ]
