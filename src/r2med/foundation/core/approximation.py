"""The loss of an approximate search compared with an exact one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Approximation:
    """An approximate search, and its recall against exact search."""

    name: str
    """The name of the retriever, as typed."""
    index: str
    """The kind of index, such as hnsw."""
    parameters: dict[str, int]
    """The settings of the index."""
    recall: dict[str, float]
    """Cutoff -> the share of the exact top documents that it finds, as {"recall@10": 0.99}, as a mean over queries."""
    sample: int
    """Number of queries that were searched in both ways."""
    seconds: float
    """Seconds that the measurement took."""
