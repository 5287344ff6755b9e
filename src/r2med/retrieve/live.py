"""Searchers for questions that come one by one, as a server gets them: opened at the start, and nothing is kept."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from r2med.retrieve.contracts import Searcher


@runtime_checkable
class MadeForRuns(Protocol):
    """A searcher made for the queries of a benchmark, asked all at once and again: it may put them into the store."""

    def live(self) -> Searcher:
        """Return one that finds the same, is opened in full, and keeps nothing of what it is asked."""


def live(searcher: Searcher) -> Searcher:
    """Return a searcher for a server that finds the same: itself, where it knows no other."""
    return searcher.live() if isinstance(searcher, MadeForRuns) else searcher
