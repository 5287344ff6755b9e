"""Size statistics of a dataset, as in the benchmark's README: queries, documents, relevant documents, lengths."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.dataset import Dataset


@dataclass(frozen=True)
class Stats:
    """Sizes of one dataset. Lengths are mean words (split at white space) and mean characters."""

    name: str
    queries: int
    documents: int
    mean_positives: float
    query_words: float
    document_words: float
    query_characters: float
    document_characters: float
    longest_document: int


def stats(dataset: Dataset) -> Stats:
    """Return the size statistics of one dataset. It is read one batch at a time."""
    words = characters = longest = 0
    for _, _, texts in dataset.corpus.batches():
        words += pc.sum(_words(pc.utf8_trim_whitespace(texts))).as_py()
        lengths = pc.utf8_length(texts)
        characters += pc.sum(lengths).as_py()
        longest = max(longest, pc.max(lengths).as_py())
    documents, queries = len(dataset.corpus), len(dataset.queries)
    return Stats(
        name=dataset.name,
        queries=queries,
        documents=documents,
        mean_positives=dataset.qrels.positives / max(len(dataset.qrels), 1),
        query_words=float(np.mean([len(q.text.split()) for q in dataset.queries])) if queries else 0.0,
        document_words=words / max(documents, 1),
        query_characters=float(np.mean([len(q.text) for q in dataset.queries])) if queries else 0.0,
        document_characters=characters / max(documents, 1),
        longest_document=longest,
    )


def _words(trimmed: pa.Array) -> pa.Array:
    # Arrow splits an empty text into one empty word.
    return pc.if_else(pc.equal(trimmed, ""), 0, pc.list_value_length(pc.utf8_split_whitespace(trimmed)))
