"""Hide the relevant documents of each query from an agent, with their copies, to see what it does without evidence."""

from __future__ import annotations

from dataclasses import replace

from r2med.data import Dataset, Query
from r2med.data.text_copies import CopyKind, find_copies

COPY_KINDS: tuple[CopyKind, ...] = ("equal", "near", "contained")
"""The copies that are hidden. A document that has half of a relevant text is another document."""


def without_relevant(dataset: Dataset) -> Dataset:
    """Return the dataset whose searches leave out the relevant documents of a query and their copies.

    The corpus, the judgements and the dataset on disk do not change: the documents are excluded for their query only.
    """
    hidden = hidden_documents(dataset)

    def barred(query: Query) -> Query:
        return replace(query, excluded=tuple(dict.fromkeys((*query.excluded, *hidden.get(query.id, ())))))

    return replace(dataset, queries=tuple(map(barred, dataset.queries)))


def hidden_documents(dataset: Dataset) -> dict[str, tuple[str, ...]]:
    """Return query -> its relevant documents in the corpus, and their copies."""
    corpus = dataset.corpus
    relevant = {
        query.id: [document for document, grade in dataset.qrels.get(query.id, {}).items() if grade > 0]
        for query in dataset.queries
    }
    named = sorted({document for documents in relevant.values() for document in documents})
    rows = {document: row for document, row in zip(named, corpus.rows(named).tolist(), strict=True) if row >= 0}
    copies = find_copies(corpus, rows.values(), kinds=COPY_KINDS)
    found = {}
    for query, documents in relevant.items():
        known = [rows[document] for document in documents if document in rows]
        all_rows = dict.fromkeys([*known, *(copy.row for row in known for copy in copies.of(row))])
        found[query] = tuple(corpus.ids(list(all_rows)))
    return found
