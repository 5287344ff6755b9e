"""What an expander is, and what it returns: the queries of a dataset as they will be searched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from r2med.data import Dataset, Query
from r2med.errors import UserError, nearest
from r2med.retrieve.retriever import SearchQuery
from r2med.store import Store, digest

QUERY_COPIES = {"lamer": 1, "query2doc": 2}
DENSE_FORMS = {"query2doc": "{query}[SEP]{text}"}
CHOICES = ("", "keep", "drop")


@dataclass(frozen=True)
class Expansion:
    """Every query of a dataset, with what was added to it; one without counts as a failure and stays itself."""

    queries: tuple[SearchQuery, ...]
    failures: int
    """Queries that got nothing."""
    fingerprint: str
    usage: dict[str, float] = field(default_factory=dict)
    failure_kinds: dict[str, int] = field(default_factory=dict)
    """Why, by kind; with several samples or rounds a query may have some that failed and still have text."""
    notices: tuple[str, ...] = ()
    traces: dict[str, Any] = field(default_factory=dict)
    """What a search agent did, turn by turn: query id -> a trace fit for JSON. Kept beside the record."""

    @classmethod
    def of(
        cls,
        queries: Iterable[SearchQuery],
        *,
        usage: dict[str, float] | None = None,
        failure_kinds: dict[str, int] | None = None,
        notices: Iterable[str] = (),
        traces: dict[str, Any] | None = None,
    ) -> Expansion:
        """Return the expansion with its failures counted and its fingerprint taken."""
        all_queries = tuple(queries)
        failures = sum(not query.expanded for query in all_queries)
        content = [query.key for query in all_queries]
        return cls(
            all_queries, failures, digest(content), usage or {}, failure_kinds or {}, tuple(notices), traces or {}
        )


class Expander(Protocol):
    """Anything that adds to queries before they are searched."""

    @property
    def name(self) -> str:
        """What one types to get it; settings at their defaults are left out."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; generated texts go in by their fingerprint."""

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Return every query of the dataset, in its order."""


@runtime_checkable
class Checked(Protocol):
    """An expander that can tell beforehand what would stop it: templates, files of recorded texts."""

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise for what would stop an expansion of one of these datasets; nothing is asked."""


def check(expanders: Iterable[object], datasets: Sequence[Dataset]) -> None:
    """Raise for what would stop one of the expanders on one of the datasets: before the first call, not after many."""
    for expander in expanders:
        if isinstance(expander, Checked):
            expander.check(datasets)


def joined(query: Query, texts: tuple[str, ...], method: str, choice: str = "") -> SearchQuery:
    """Return a query with its texts, joined as the method has it; `choice` keeps or drops the query's own words."""
    if choice not in CHOICES:
        raise UserError(f"query={choice!r}{nearest(choice, CHOICES)}: keep or drop the original query")
    copies = QUERY_COPIES.get(method, 0)
    copies = max(copies, 1) if choice == "keep" else 0 if choice == "drop" else copies
    return SearchQuery(query, texts, copies, DENSE_FORMS.get(method, "")) if texts else SearchQuery(query)
