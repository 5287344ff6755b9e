"""What an expander is, and what it returns: the queries of a dataset as they will be searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from r2med.core.cost import NOTHING, Cost
from r2med.data import Dataset, Query
from r2med.llm.costs import Preview
from r2med.retrieve.retriever import MEAN, Search, SearchQuery
from r2med.store import Store, digest

QueryChoice = Literal["", "keep", "drop"]
"""What may be asked of the query's own words in a search by words; empty: as the method has it."""

JoiningChoice = Literal["", "published"]
"""How copies of the query are joined in a search by words; empty: with spaces."""


@dataclass(frozen=True)
class Joining:
    """How generated texts join a query."""

    copies: int = 0
    """How often the query stands before the texts where words are matched."""
    dense_form: str = MEAN
    """How a dense model searches the two."""
    glued: bool = False
    """True if the copies of the query follow each other without a space, as in the benchmark's rows of query2doc."""

    def choose(self, query: QueryChoice, joining: JoiningChoice = "") -> Joining:
        """Return the same with the query's own words kept, or dropped, in a search by words."""
        copies = {"": self.copies, "keep": max(self.copies, 1), "drop": 0}[query]
        return Joining(copies, self.dense_form, joining == "published")

    def settings(self) -> dict[str, Any]:
        """Return what a score depends on; the usual space between copies is not mentioned, as before it had a name."""
        declared = asdict(self)
        return declared if self.glued else {name: value for name, value in declared.items() if name != "glued"}

    def join(self, query: Query, texts: Iterable[str]) -> SearchQuery:
        """Return a query with its texts; without any it is searched as it is."""
        written = tuple(filter(None, texts))
        return (
            SearchQuery(query, written, self.copies, self.dense_form, glued=self.glued)
            if written
            else SearchQuery(query)
        )


@dataclass(frozen=True)
class Expansion:
    """Every query of a dataset with what was added to it. A query that got nothing is a failure and stays itself."""

    queries: tuple[SearchQuery, ...]
    failures: int = 0
    """Queries that got nothing."""
    fingerprint: str = ""
    cost: Cost = NOTHING
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    """Why, by kind; with several samples or rounds a query may have some that failed and still have text."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Query id -> how many of its answers failed, by kind, in words."""
    cut_texts: int = 0
    """Texts that reached their limit of tokens and are kept up to their last whole sentence."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """What else a record should tell: the turns and searches of an agent."""
    notices: tuple[str, ...] = ()
    searches: tuple[Search, ...] = field(default=(), compare=False)
    """What was searched for on the way, by an agent or between rounds."""
    traces: Mapping[str, Any] = field(default_factory=dict)
    """What a search agent did, turn by turn: query id -> a trace fit for JSON. Kept beside the record."""

    @classmethod
    def of(cls, queries: Iterable[SearchQuery], **more: Any) -> Expansion:
        """Return the expansion with its failures counted and its fingerprint taken."""
        all_queries = tuple(queries)
        failures = sum(not query.expanded for query in all_queries)
        return cls(all_queries, failures, digest([query.key for query in all_queries]), **more)


def told_cut(cut: int, texts: int) -> str:
    """Return what to tell of texts that reached their limit of tokens."""
    return f"{cut} of {texts} texts reached their limit of tokens and are kept up to their last whole sentence"


class Expander(Protocol):
    """Anything that adds to queries before they are searched."""

    @property
    def name(self) -> str:
        """What one types to get it; settings at their defaults are left out."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting a score depends on; nothing is asked. Generated texts are told by their fingerprint."""

    def expand(self, dataset: Dataset, store: Store) -> Expansion:
        """Return every query of the dataset, in its order."""


@runtime_checkable
class Checked(Protocol):
    """A stage that can tell beforehand what would stop it: templates, files of recorded texts."""

    def check(self, datasets: Sequence[Dataset]) -> None:
        """Raise UserError for what would stop it on one of these datasets; nothing is asked."""


@runtime_checkable
class Asking(Protocol):
    """A stage that asks an LLM."""

    def preview(self, dataset: Dataset, store: Store) -> Preview:
        """Return what it would ask about one dataset; nothing is asked."""


def check(stages: Iterable[object], datasets: Sequence[Dataset]) -> None:
    """Raise UserError for what would stop a stage on one of the datasets: before the first call, not after many."""
    for stage in stages:
        if isinstance(stage, Checked):
            stage.check(datasets)
