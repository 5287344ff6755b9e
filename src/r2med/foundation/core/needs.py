"""What a plan adds up: the work of a stage with a dataset of a given size. Nothing is loaded, asked or written."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

HALF_PRECISION_BYTES, MEMORY_MARGIN = 2, 1.2
"""Bytes of a weight in half precision, and the factor for activations and caches beside the weights."""
QUERY_TOKENS, DOCUMENT_TOKENS = 200, 300
"""Approximate tokens of a query and of a document, where a plan has not read the dataset."""


@dataclass(frozen=True)
class Size:
    """The size of a dataset, as far as a plan knows it."""

    queries: int
    documents: int
    query_tokens: int = QUERY_TOKENS
    """Mean number of tokens of a query."""
    document_tokens: int = DOCUMENT_TOKENS
    """Mean number of tokens of a document."""
    stored: frozenset[tuple[str, str]] = frozenset()
    """What the store has for its documents: (folder, model)."""

    def times(self, searches: int) -> Size:
        """Return the size of the same documents with this many searches for each query."""
        return replace(self, queries=self.queries * searches)


@dataclass(frozen=True)
class Needs:
    """The work of one stage, or of an LLM that reads or judges. All numbers are estimates; None: it is not known."""

    stage: str = ""
    """The stage as typed, or who is asked."""
    candidates_of: str = ""
    """The system whose candidates a reranker reads: with those of another one, the same stage has other work."""
    indexed: int = 0
    """Documents that are indexed for a search by words."""
    encoded: int = 0
    """Documents that a model encodes."""
    stored: int = 0
    """Further documents that the store has already."""
    pairs: int = 0
    """Pairs of a query and a document that a model scores."""
    calls: int | None = 0
    """Usual number of calls of an LLM."""
    most_calls: int | None = 0
    """Largest number of calls."""
    read: int | None = 0
    """Tokens that an LLM or an API reads in the usual calls."""
    written: int | None = 0
    """Tokens that an LLM writes in them, if its answers are as long as usual."""
    dollars: float | None = 0.0
    """Price of the usual calls. None also where no price is known, as for a server of your own."""
    most_dollars: float | None = 0.0
    """Price of all calls, if every answer uses its whole limit of tokens."""
    seconds: float | None = 0.0
    """Seconds of the work."""
    fetch: float | None = 0.0
    """Bytes of weights to download."""
    memory: float | None = 0.0
    """Bytes of GPU memory of the weights that run in this process."""
    served: float | None = 0.0
    """Bytes of GPU memory that an LLM needs at its own server."""
    missing: str = ""
    """What is missing, in one line. Empty if the stage can run."""
    note: str = ""
    """What the numbers do not say."""

    def __add__(self, other: Needs) -> Needs:
        """Return the work on two datasets. Weights are downloaded and loaded once."""
        numbers = {name: _sum(getattr(self, name), getattr(other, name)) for name in WORK}
        weights = {name: _larger(getattr(self, name), getattr(other, name)) for name in WEIGHTS}
        missing, note = self.missing or other.missing, self.note or other.note
        return replace(self, **numbers, **weights, missing=missing, note=note)

    def times(self, count: int) -> Needs:
        """Return the work done this many times."""
        return replace(self, **{name: _product(getattr(self, name), count) for name in WORK})


WORK = (
    *("indexed", "encoded", "stored", "pairs", "calls", "most_calls", "read", "written"),
    *("dollars", "most_dollars", "seconds"),
)
"""The numbers that are added."""
WEIGHTS = ("fetch", "memory", "served")


def _sum(one: float | None, other: float | None) -> Any:
    return None if one is None or other is None else one + other


def _larger(one: float | None, other: float | None) -> Any:
    return None if one is None or other is None else max(one, other)


def _product(number: float | None, count: int) -> Any:
    return None if number is None else number * count


_SIZE = re.compile(r"(?<![A-Za-z0-9.])(?:(\d+) × )?(\d+(?:\.\d+)?)([MBT])(?![A-Za-z])", re.IGNORECASE)
_UNITS = {"M": 1e6, "B": 1e9, "T": 1e12}


def parameter_count(stated: str) -> float | None:
    """Return the number of parameters in a card's `parameters` or in a model name: 220 million for "2 × 110M".

    None if it states no size.
    """
    match = _SIZE.search(stated)
    return round(int(match[1] or 1) * float(match[2]) * _UNITS[match[3].upper()]) if match else None


def gpu_memory(parameters: str) -> float | None:
    """Return the estimated bytes of GPU memory of a model from a card's `parameters`; None if they state no size."""
    count = parameter_count(parameters)
    return None if count is None else count * HALF_PRECISION_BYTES * MEMORY_MARGIN
