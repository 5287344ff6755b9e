"""What a retriever is given and returns: queries with the text of an expansion, and their rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from r2med.data import Query
from r2med.data.runs.run import Run
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.core.keys import changed_values
from r2med.systems.retrieve.fused_rankings import FusionMethod

MEAN = ""
TEXTS_ALONE = "{text}"
"""How generated texts join a query for a dense model.

MEAN is the mean of the query's vector and theirs. TEXTS_ALONE uses only theirs. Any other form is one string that is
encoded as the query, such as {query}[SEP]{text}.
"""


@dataclass(frozen=True)
class SearchQuery:
    """A query with the text that an expansion added, and how the two are joined."""

    query: Query
    generated: tuple[str, ...] = ()
    copies: int = 0
    """Number of copies of the query before the generated texts, for retrievers that match words."""
    dense_form: str = MEAN
    """How the two are joined for dense models."""
    terms: tuple[tuple[str, float], ...] = ()
    """Index terms with weights, used instead of a text by retrievers that match words. Others search the query."""
    glued: bool = False
    """True if the copies follow each other without a space."""
    parts: tuple[tuple[SearchQuery, float], ...] = ()
    """Queries that are searched in place of this one, each with its weight; see `search_parts`."""
    fuse: FusionMethod = "rrf"
    """How the rankings of the parts are added up."""
    replaces: Query | None = field(default=None, compare=False)
    """The query that a rewritten text replaces. Models of folds are chosen by it."""

    @property
    def expanded(self) -> bool:
        """Return True if an expansion added anything."""
        return bool(self.generated or self.terms or self.parts)

    @property
    def lexical_text(self) -> str:
        """The text for retrievers that match words. Without generated text it is the query itself."""
        if not self.generated:
            return self.query.text
        copies = [self.query.text] * self.copies
        return " ".join([*(["".join(copies)] if self.glued and copies else copies), *self.generated])

    @property
    def key(self) -> list[Any]:
        """Everything that a ranking depends on."""
        query, parts = self.query, [[part.key, weight] for part, weight in self.parts]
        return [query.id, query.text, query.excluded, changed_values(self, but=("query", "parts", "replaces")), parts]


@dataclass(frozen=True)
class SearchReport:
    """What happened inside a search that asks LLMs or has several stages. Reports can be added."""

    failures: int = 0
    """Number of queries and of questions to rerankers that failed."""
    asked: int = 0
    """Number of queries and of questions that could fail."""
    failure_kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind of failure -> number of failures."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Query id -> number of its failures by kind, in words."""
    repairs: Mapping[str, int] = field(default_factory=dict)
    """Kind of repair of an LLM's ranking -> number of repairs."""
    counts: Mapping[str, float] = field(default_factory=dict)
    """Further facts for a record, such as turns and searches of an agent."""
    notices: tuple[str, ...] = ()
    """Remarks for the user, one sentence each."""
    texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Query id -> texts that an expansion inside the search wrote."""
    traces: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """Query id -> the conversations of search agents, ready for JSON."""

    def __add__(self, other: SearchReport) -> SearchReport:
        return SearchReport(**{name: _added(getattr(self, name), getattr(other, name)) for name in _REPORTED})

    def __radd__(self, other: int) -> SearchReport:
        return self  # so that sum() works, which begins with 0


def _added(mine: Any, others: Any) -> Any:
    if not isinstance(mine, Mapping):
        return mine + others
    both = {name: _joined(mine[name], others[name]) for name in mine if name in others}
    return {**mine, **others, **both}


def _joined(mine: Any, others: Any) -> Any:
    return f"{mine}, {others}" if isinstance(mine, str) else mine + others


_REPORTED = tuple(each.name for each in fields(SearchReport))
NO_REPORT = SearchReport()


@dataclass(frozen=True)
class Searched:
    """A run, and its cost when it was made."""

    run: Run
    """The rankings."""
    cost: Cost = NOTHING
    """Cost of searching these queries."""
    prepared: Cost = NOTHING
    """Cost of preparing the corpus. This is done once for all searches."""
    report: SearchReport = NO_REPORT
    """What happened inside a search that asks LLMs or has several stages."""
