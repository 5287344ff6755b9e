"""What several searches took together, where some are of one part, or even the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from r2med.retrieve.cached import Searched
from r2med.retrieve.contracts import PREPARING, SearchQuery


class Took:
    """What the searches of all parts took: one part prepares its corpus once, and the same search is done once."""

    def __init__(self) -> None:
        self.timings: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self.prepared: Counter[str] = Counter()
        self._searches: set[tuple[str, tuple[SearchQuery, ...]]] = set()
        self._parts: set[str] = set()

    def add(self, part: str, asked: Sequence[SearchQuery], searched: Searched) -> None:
        """Take in one search of a part."""
        if (search := (part, tuple(asked))) in self._searches:
            return
        again = part in self._parts
        self.timings.update({step: s for step, s in searched.timings.items() if not (again and step in PREPARING)})
        self.usage.update(searched.usage)
        if not again:
            self.prepared.update(searched.prepared)
        self._searches.add(search)
        self._parts.add(part)
