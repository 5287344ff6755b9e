"""Searchers for questions that come once, as a server gets them: all is opened at the start, nothing asked is kept."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from r2med.retrieve.contracts import Searcher


@runtime_checkable
class KeepsQueries(Protocol):
    """A searcher that puts what it is asked into the store: right for a benchmark's queries, a leak for a server's."""

    def live(self) -> Searcher:
        """Return one that finds the same, opened in full, and keeps nothing."""


def live(searcher: Searcher) -> Searcher:
    """Return a searcher that finds the same and keeps nothing: itself, where it never does."""
    return searcher.live() if isinstance(searcher, KeepsQueries) else searcher
