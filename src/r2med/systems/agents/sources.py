"""Sources that an agent searches: a retriever over the dataset's corpus or another one, or a remote server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

from r2med.data import Dataset, Query
from r2med.data.corpus import Corpus
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.foundation.core.cost import NOTHING, Cost
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import Stage, key_of
from r2med.foundation.store import Store
from r2med.models.llm.chat import Failure
from r2med.systems.agents.agent_state import Hit
from r2med.systems.retrieve.retriever import NO_REPORT, SearchQuery, SearchReport
from r2med.systems.retrieve.stored_search import stored_search

Documents = tuple[Hit, ...] | Failure
"""The documents of one search, or the reason why there are none."""


@dataclass(frozen=True)
class SourceResult:
    """The results of a batch of searches, in order, and their cost."""

    documents: tuple[Documents, ...]
    cost: Cost = NOTHING
    prepared: Cost = NOTHING
    """The cost of preparing the corpus once, however often it is searched."""
    report: SearchReport = NO_REPORT
    """What happened inside the searches."""


class Source(Protocol):
    """A search that is open for the queries of one dataset."""

    def search(self, queries: Sequence[Query]) -> SourceResult:
        """Return the documents of each query without excluded ones, best first, or the reason why there are none."""


@dataclass(frozen=True)
class LocalSearch:
    """A retriever over a corpus."""

    by: Stage
    runtime: Runtime
    corpus: str = ""
    """The name or folder of the searched dataset; empty means the dataset of the queries."""
    keeps_texts: ClassVar[bool] = False
    """True if a trace must hold the texts of documents, because they cannot be looked up later."""

    @property
    def varies(self) -> bool:
        """True if another run can find other documents."""
        return self.by.varies(self.runtime)

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return the settings of the retriever, and the corpus by its fingerprint."""
        return {"by": key_of(self.by, dataset, self.runtime), "corpus": self._searched(dataset).corpus.fingerprint}

    def labels(self) -> tuple[str, ...]:
        """Return the label of the other dataset, because answers may quote its documents."""
        if not self.corpus:
            return ()
        from r2med.data.dataset_word import DatasetWord

        return (DatasetWord.parse(self.corpus).label,)

    def open(self, dataset: Dataset, store: Store, topk: int) -> Source:
        """Return the search for the queries of one dataset."""
        return _OpenRetriever(self.by, self._searched(dataset), self.runtime.with_store(store), topk)

    def _searched(self, dataset: Dataset) -> Dataset:
        """Return the dataset with the searched corpus. Its instruction for models does not change."""
        if not self.corpus:
            return dataset
        from r2med.data.loading import load_dataset

        return replace(dataset, corpus=load_dataset(self.corpus, self.runtime.store).corpus)


@dataclass(frozen=True)
class _OpenRetriever:
    """A retriever with cached results, so that a restarted run gets the same documents."""

    retriever: Stage
    dataset: Dataset
    runtime: Runtime
    topk: int

    def search(self, queries: Sequence[Query]) -> SourceResult:
        asked = list(map(SearchQuery, queries))
        searched = stored_search(self.retriever, self.dataset, asked, self.topk, self.runtime)
        hits = tuple(hits_of(searched.run, self.dataset.corpus))
        return SourceResult(hits, searched.cost, searched.prepared, searched.report)


def hits_of(run: Run, corpus: Corpus) -> list[tuple[Hit, ...]]:
    """Return the documents of each query of a run, best first."""
    rows = run.rows[run.rows != NO_DOCUMENT]  # all together, because Arrow reads many documents as fast as one
    ids, texts = iter(corpus.ids(rows)), iter(corpus.texts(rows))
    return [
        tuple(Hit(next(ids), contents(next(texts)), score) for score in scores[:count].tolist())
        for scores, count in zip(run.scores, run.found, strict=True)
    ]


def contents(text: str) -> str:
    """Return a text whose first line is a title. A text of one line gets an empty title.

    Clients of Search-R1's protocol take the first line as the title, so a text of one line would have no content.
    """
    return text if "\n" in text else f"\n{text}"


def title_and_text(contents: str) -> tuple[str, str]:
    """Return title and text, as a client of Search-R1's protocol reads them."""
    title, _, text = contents.partition("\n")
    return title.strip(), text.strip()
