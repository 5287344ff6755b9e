"""What an expansion returns: the queries of a dataset as they will be searched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Any, Literal

from r2med.data import Query
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.store import digest
from r2med.systems.retrieve.fused_rankings import FusionMethod
from r2med.systems.retrieve.retriever import MEAN, SearchQuery

QueryChoice = Literal["", "keep", "drop"]
"""Keep or drop the query's own words in a search by words. Empty means the choice of the method."""

JoiningChoice = Literal["", "published"]
"""How copies of the query are joined in a search by words. Empty means with spaces."""


@dataclass(frozen=True)
class SearchApart:
    """How the texts of a query are searched apart: each is a query of its own, and the rankings are fused."""

    fuse: FusionMethod = "rrf"
    """How the rankings are added up."""
    weights: tuple[float, ...] = ()
    """Weights of the texts of one answer, in their order. Empty means 1 for each."""
    original: float = 0.0
    """Weight of the original query. With 0 it is not searched."""
    replaces: bool = False
    """True if a text is searched in place of the query. Otherwise it is joined with the query."""


@dataclass(frozen=True)
class Joining:
    """How generated texts are joined with a query."""

    copies: int = 0
    """Number of copies of the query before the texts, in a search by words."""
    dense_form: str = MEAN
    """The input of a dense model: the mean of the vectors of query and text, or one string."""
    glued: bool = False
    """True if the copies of the query follow each other without a space, as in the benchmark's rows of query2doc."""
    balance: float = 0.0
    """Number of words of text for each word of the query's copies: longer texts get more copies. 0: only `copies`."""
    apart: SearchApart | None = None
    """How texts are searched apart; None if they are searched together."""

    def choose(self, query: QueryChoice, joining: JoiningChoice = "") -> Joining:
        """Return the same joining with the query's own words kept, or dropped, in a search by words."""
        copies = {"": self.copies, "keep": max(self.copies, 1), "drop": 0}[query]
        balance = 0.0 if query == "drop" else self.balance
        return replace(self, copies=copies, glued=joining == "published", balance=balance)

    def join(self, query: Query, texts: Iterable[str]) -> SearchQuery:
        """Return a query with its texts. Without texts the query is unchanged."""
        written = tuple(filter(None, texts))
        if not written:
            return SearchQuery(query)
        joined = self._together(query, written)
        return joined if self.apart is None else self._parts(joined, self.apart)

    def _together(self, query: Query, texts: tuple[str, ...]) -> SearchQuery:
        copies = self.copies
        if self.balance:
            words = sum(len(text.split()) for text in texts)
            copies = max(copies, int(words / (self.balance * max(len(query.text.split()), 1))))
        return SearchQuery(query, texts, copies, self.dense_form, glued=self.glued)

    def _parts(self, joined: SearchQuery, apart: SearchApart) -> SearchQuery:
        """Return the query with each of its texts as a query of its own."""
        query = joined.query
        own = ((SearchQuery(query), apart.original),) if apart.original else ()
        alone = (
            SearchQuery(replace(query, text=text), replaces=query) if apart.replaces else self._together(query, (text,))
            for text in joined.generated
        )
        weighted = tuple(zip(alone, cycle(apart.weights or (1.0,)), strict=False))
        return replace(joined, parts=(*own, *weighted), fuse=apart.fuse)


@dataclass(frozen=True)
class Expansion:
    """All queries of a dataset with their added texts. A query without a text is a failure and stays unchanged."""

    queries: tuple[SearchQuery, ...]
    """The queries as they will be searched."""
    failures: int = 0
    """Queries without added text."""
    digest: str = ""
    """A digest of the added texts, for keys."""
    cost: Cost = NOTHING
    """The cost of the expansion."""
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure -> number of answers. With several samples or rounds, such a query may still have text."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Query id -> number of failed answers by kind, in words."""
    cut_texts: int = 0
    """Number of texts that reached the token limit and are kept up to their last whole sentence."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Further facts for a record, such as turns and searches of an agent."""
    notices: tuple[str, ...] = ()
    """Remarks for the user, one sentence each."""
    traces: Mapping[str, Any] = field(default_factory=dict)
    """The actions of a search agent, turn by turn: query id -> a trace for JSON. It is saved beside the record."""

    @classmethod
    def of(cls, queries: Iterable[SearchQuery], **more: Any) -> Expansion:
        """Return the expansion with counted failures and its digest."""
        all_queries = tuple(queries)
        failures = sum(not query.expanded for query in all_queries)
        return cls(all_queries, failures, digest([query.key for query in all_queries]), **more)


def cut_notice(cut: int, texts: int) -> str:
    """Return a notice about texts that reached the token limit."""
    return f"{cut} of {texts} texts reached the token limit and are kept up to their last whole sentence"
