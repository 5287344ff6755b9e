"""Documents that a search agent found: fused into one ranking, and put before those that a retriever finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from r2med.data.corpus import Corpus
from r2med.data.runs.run import NO_DOCUMENT, Run
from r2med.systems.retrieve.added_worth import AddedWorth


def fused(rankings: Sequence[Sequence[str]], corpus: Corpus) -> tuple[str, ...]:
    """Return the documents of several rankings in the order of reciprocal rank fusion.

    Documents that the corpus does not have are left out. Ties follow the rule of ties.py.
    """
    worth, depth = AddedWorth(1), sum(map(len, rankings))
    for ranking in rankings:
        worth.add(0, corpus.rows(list(ranking)), np.zeros(len(ranking), np.float32), "rrf", 1.0)
    (found,) = worth.ranked([""], depth, corpus).id_lists()
    return tuple(found)


def finds_first(run: Run, finds: Mapping[str, Sequence[str]], corpus: Corpus, k: int) -> Run:
    """Return a run with the documents found for a query first, then its others in their order, k in all.

    `finds` are query id -> document ids, the best first. The scores of such a query count down to 1, because those of
    the retriever say nothing about the documents found. A query without finds keeps its ranking and its scores.
    """
    hits = []
    for line, query in enumerate(run.queries):
        rows, scores = run.rows[line], run.scores[line]
        rows, scores = rows[rows != NO_DOCUMENT], scores[rows != NO_DOCUMENT]
        if query in finds:
            found = corpus.rows(list(finds[query]))
            rows = np.concatenate([found, rows[~np.isin(rows, found)]])[:k].astype(np.int32)
            scores = np.arange(len(rows), 0, -1, dtype=np.float32)
        hits.append((rows, scores))
    return Run.ranked(run.queries, hits, corpus)
