"""Do relevant documents say the same in other words? Compare the concepts of queries and documents by a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from r2med.foundation.text.synonyms import Synonyms, normal_term


@dataclass(frozen=True)
class ConceptUse:
    """Numbers of a query's concepts, by how its relevant documents write them."""

    same: int
    """Concepts that a relevant document writes with a term of the query."""
    other: int
    """Concepts that relevant documents write only with other terms."""
    absent: int
    """Concepts that no relevant document contains."""

    @property
    def total(self) -> int:
        """Number of concepts of the query."""
        return self.same + self.other + self.absent

    @property
    def gap(self) -> float:
        """Share of the concepts that appear only under other words; NaN if the query has no concept."""
        return self.other / self.total if self.total else np.nan

    @property
    def missing(self) -> float:
        """Share of the concepts that no relevant document contains; NaN if the query has no concept."""
        return self.absent / self.total if self.total else np.nan


def concept_use(synonyms: Synonyms, query: str, documents: Iterable[str]) -> ConceptUse:
    """Return how the relevant documents of a query write its concepts."""
    asked = _forms(synonyms, query)
    written: dict[str, set[str]] = {}
    for document in documents if asked else ():
        for concept, forms in _forms(synonyms, document).items():
            written.setdefault(concept, set()).update(forms)
    same = sum(bool(forms & written.get(concept, set())) for concept, forms in asked.items())
    absent = sum(concept not in written for concept in asked)
    return ConceptUse(same, len(asked) - same - absent, absent)


def _forms(synonyms: Synonyms, text: str) -> dict[str, set[str]]:
    """Return the concepts of a text with their terms in normal form, so that a plural is not another word."""
    return {concept: set(map(normal_term, terms)) for concept, terms in synonyms.concepts(text).items()}
