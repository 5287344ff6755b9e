"""What an approximate search lost against an exact one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Approximation:
    """An approximate search, and its recall against exact search."""

    name: str
    """The retriever, as one types it."""
    index: str
    parameters: dict[str, int]
    recall: dict[str, float]
    """Cutoff -> the share of the exact top documents that it has, as {"recall@10": 0.99}: a mean over queries."""
    sample: int
    """Queries that were searched both ways."""
    seconds: float
    """What measuring took."""
