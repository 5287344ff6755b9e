"""The passages a model is shown: the top of a search in the same dataset, through the store."""

from __future__ import annotations

from collections.abc import Sequence

from r2med.data.dataset import Dataset
from r2med.prompts.fitting import first_words
from r2med.retrieve.cached import cached_search
from r2med.retrieve.retriever import Retriever, SearchQuery
from r2med.retrieve.run import NO_DOCUMENT
from r2med.store import Store

DEPTH, WORDS = 10, 512
"""As LameR has it in the benchmark: ten passages, 512 words of each."""


def top_passages(
    retriever: Retriever, dataset: Dataset, queries: Sequence[SearchQuery], store: Store
) -> list[list[str]]:
    """Return the texts of the best documents of each query, the best first; fewer where fewer were found."""
    run = cached_search(retriever, dataset, queries, DEPTH, store).run
    found = [dataset.corpus.texts(rows[rows != NO_DOCUMENT]) for rows in run.rows]
    return [[first_words(text, WORDS) for text in texts] for texts in found]
