"""What a retriever is, and the query it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from r2med.data.corpus import Corpus
from r2med.data.model import Query
from r2med.retrieve.run import Run
from r2med.store import Store


@dataclass(frozen=True)
class SearchQuery:
    """The original query with what an expansion added; how the two combine is each kind of retriever's business."""

    query: Query
    generated: tuple[str, ...] = ()
    method: str = ""


class Searcher(Protocol):
    """A retriever that has seen a corpus."""

    timings: Mapping[str, float]
    """Seconds that each step of preparing the corpus took when it was done, maybe in an earlier run."""

    def search(self, queries: Sequence[SearchQuery], k: int) -> Run:
        """Return the k best documents of each query, exactly, ties by document id descending."""


class Retriever(Protocol):
    """Anything that can search a corpus."""

    def describe(self) -> dict[str, Any]:
        """Return every setting a score depends on; it goes into keys and records."""

    def index(self, corpus: Corpus, store: Store) -> Searcher:
        """Prepare a corpus, through the store."""
