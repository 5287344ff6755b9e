"""Find documents with the same text as a relevant document. Measures ignore them, although they would help a reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from r2med.data import Dataset
from r2med.data.runs.trec import WrittenRun


def copies_of_relevant(dataset: Dataset) -> dict[str, list[str]]:
    """Return relevant document -> other documents with the same text, for documents that have such copies."""
    relevant = sorted({d for grades in dataset.qrels.values() for d, grade in grades.items() if grade > 0})
    rows = dataset.corpus.rows(relevant)
    known = [document for document, row in zip(relevant, rows, strict=True) if row >= 0]
    text_of = dict(zip(known, dataset.corpus.texts(rows[rows >= 0]), strict=True))
    wanted = pa.array(list(dict.fromkeys(text_of.values())), pa.large_string())
    alike: dict[str, list[str]] = {}
    for _, ids, texts in dataset.corpus.batches():
        same = pc.is_in(texts, value_set=wanted)
        for document, text in zip(ids.filter(same).to_pylist(), texts.filter(same).to_pylist(), strict=True):
            alike.setdefault(text, []).append(document)
    return {d: others for d, text in text_of.items() if (others := [o for o in alike[text] if o != d])}


def ranks_with_copies(
    run: WrittenRun, query: str, relevant: Iterable[str], copies: Mapping[str, list[str]]
) -> list[int] | None:
    """Return the ranks of relevant documents if copies of their texts count too. 0 means not retrieved.

    A copy counts for only one document. Returns None if no rank changes.
    """
    documents = list(relevant)
    if not any(document in copies for document in documents):
        return None
    before = [run.rank(query, document) for document in documents]
    after, used = list(before), set(documents)
    for position, document in enumerate(documents):
        ranks = {o: rank for o in copies.get(document, ()) if o not in used and (rank := run.rank(query, o))}
        if ranks:
            best = min(ranks, key=ranks.__getitem__)
            if not after[position] or ranks[best] < after[position]:
                after[position] = ranks[best]
                used.add(best)
    return after if after != before else None
