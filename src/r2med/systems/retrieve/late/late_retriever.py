"""Retrievers with a model of late interaction or of learned term weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from r2med.data import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.models.encoders.model_cards import LateLoader
from r2med.systems.retrieve.late.late_searcher import LateSearcher, TermSearcher, TokenSearcher
from r2med.systems.retrieve.vectors.vector_retriever import VectorRetriever


@dataclass(frozen=True)
class LateRetriever(VectorRetriever):
    """A model with a vector for each token of a text."""

    def key(self, dataset: Dataset) -> dict[str, Any]:
        """Return every setting that a score depends on. Raises UserError if one needs a single vector per text."""
        if self.stage.changed:
            typed = ", ".join(f"{key}={value}" for key, value in self.stage.changed)
            raise UserError(f"{self.stage.name}: {typed} needs a model with one vector per text")
        return super().key(dataset)

    def index(self, dataset: Dataset, store: Store) -> LateSearcher:
        """Return a searcher. Vectors in the store are not encoded again."""
        return TokenSearcher(self, self.embedded(dataset, store))


@dataclass(frozen=True)
class SparseRetriever(LateRetriever):
    """A model with a weight for each term of a text."""

    def index(self, dataset: Dataset, store: Store) -> LateSearcher:
        """Return a searcher. Weights in the store are not computed again."""
        return TermSearcher(self, self.embedded(dataset, store))


LATE_RETRIEVERS: Mapping[LateLoader, type[LateRetriever]] = {"multi-vector": LateRetriever, "sparse": SparseRetriever}
"""Loader of a card -> its retriever. Cards with any other loader have one vector per text."""
