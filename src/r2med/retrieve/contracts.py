"""What a retriever is, and the query it is asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from r2med.data.corpus import Corpus
from r2med.data.dataset import Query
from r2med.data.dataset_cards import Instruction
from r2med.retrieve.run import Run
from r2med.store import Store


@dataclass(frozen=True)
class SearchQuery:
    """The original query with what an expansion added; how the two combine is each kind of retriever's business."""

    query: Query
    generated: tuple[str, ...] = ()
    method: str = ""
    copies: int | None = None
    """How often a word-matching retriever searches the query beside what was generated; None: as the method has it."""
    terms: tuple[tuple[str, float], ...] = ()
    """Index terms with weights, instead of a text, for retrievers that match words; all others search the query."""

    @property
    def expanded(self) -> bool:
        """Whether an expansion added anything."""
        return bool(self.generated or self.terms)


PREPARING = ("index", "encode")
"""Steps of preparing a corpus, as timings name them: done once, however often it is searched."""


class Searcher(Protocol):
    """A retriever that has seen a corpus."""

    timings: Mapping[str, float]
    """Seconds that each step took when it was done, maybe in an earlier run: those of PREPARING, and of searching."""

    prepared: Mapping[str, float]
    """What models used to prepare the corpus when that was done (texts, tokens, cost_usd, …)."""

    def search(self, queries: Sequence[SearchQuery], k: int) -> Run:
        """Return the k best documents of each query, exactly, ties by document id descending."""

    def usage(self) -> dict[str, float]:
        """Return what models used for the searches so far; what is read back counts as when it was made."""


class Retriever(Protocol):
    """Anything that can search a corpus."""

    @property
    def name(self) -> str:
        """What one types to get it; settings at their defaults are left out."""

    def describe(self, instruction: Instruction | None) -> dict[str, Any]:
        """Return every setting a score depends on; it goes into keys and records."""

    def index(self, corpus: Corpus, store: Store, instruction: Instruction | None) -> Searcher:
        """Prepare a corpus, through the store. The instruction holds the dataset's words for models that take some."""
