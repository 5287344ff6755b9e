"""What an agent searches: a retriever of ours over the dataset's corpus or another, or a server elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from r2med.agents.contracts import Document
from r2med.data.corpus import Corpus
from r2med.data.dataset import Dataset, Query
from r2med.llm.contracts import Failure
from r2med.retrieve.cached import cached_search
from r2med.retrieve.contents import contents
from r2med.retrieve.retriever import Retriever, SearchQuery
from r2med.store import Store

Found = tuple[Document, ...] | Failure


@dataclass(frozen=True)
class Wanted:
    """One search for one conversation: all that a source is told."""

    id: str
    text: str
    excluded: tuple[str, ...] = ()
    """Documents that are not to be shown: those the query was made from."""


class Source(Protocol):
    """A search that is open."""

    def search(self, wanted: Sequence[Wanted]) -> list[Found]:
        """Return each one's documents, best first, or why there are none."""

    def notices(self) -> list[str]:
        """Return what a user should know of what was found."""

    def usage(self) -> dict[str, float]:
        """Return what searching took so far: search_seconds, and cost_usd where a model behind an API encodes."""


class Searchable(Protocol):
    """What an agent was told to search, before it is opened for a dataset."""

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """What one types to get it; empty for what is searched by default."""

    @property
    def elsewhere(self) -> bool:
        """Whether its documents lie where nobody can look them up later, so that a trace has to hold their texts."""

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that what is found depends on."""

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for one dataset's queries."""


@dataclass(frozen=True)
class Ours:
    """A retriever over a corpus."""

    by: Retriever
    corpus: str = ""
    """A dataset's name or folder; empty: the dataset that the queries are of."""
    store: Store | None = None
    """Where the other dataset's corpus is kept."""
    elsewhere: ClassVar[bool] = False

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        """What one types to get it."""
        by = str(getattr(self.by, "stage", self.by))
        named = (("by", "" if by == "bm25" else by), ("corpus", self.corpus))
        return tuple((key, value) for key, value in named if value)

    def describe(self, dataset: Dataset) -> dict[str, Any]:
        """Return the retriever's settings and the corpus by its fingerprint."""
        return {"by": self.by.describe(dataset), "corpus": self._corpus(dataset, self.store).fingerprint}

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for one dataset's queries."""
        return _Retriever(self.by, replace(dataset, corpus=self._corpus(dataset, store)), store, topk)

    def _corpus(self, dataset: Dataset, store: Store | None) -> Corpus:
        if not self.corpus:
            return dataset.corpus
        from r2med.data.loading import load

        return load(self.corpus, store).corpus


@dataclass
class _Retriever:
    """A retriever of ours, through the store: a run that is started again finds what it found."""

    retriever: Retriever
    dataset: Dataset
    store: Store
    topk: int
    seconds: float = 0.0
    cost_usd: float = 0.0
    corpus_usd: float = 0.0

    def search(self, wanted: Sequence[Wanted]) -> list[Found]:
        queries = [SearchQuery(Query(each.id, each.text, excluded=each.excluded)) for each in wanted]
        searched = cached_search(self.retriever, self.dataset, queries, self.topk, self.store)
        run = searched.run
        self.seconds += searched.cost.seconds
        self.cost_usd += searched.cost.dollars
        self.corpus_usd = searched.prepared.dollars  # paid once, however often it is searched
        found: list[Found] = []
        for rows, scores, count in zip(run.rows, run.scores, run.found, strict=True):
            ids, texts = self.dataset.corpus.ids(rows[:count]), self.dataset.corpus.texts(rows[:count])
            hits = zip(ids, texts, scores[:count].tolist(), strict=True)
            found.append(tuple(Document(name, contents(text), score) for name, text, score in hits))
        return found

    def notices(self) -> list[str]:
        return []

    def usage(self) -> dict[str, float]:
        return {"search_seconds": self.seconds, "cost_usd": self.cost_usd + self.corpus_usd}
