"""Searches and rerankings as activities: their queries and the best documents of their rankings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial

from r2med.data.corpus import Corpus
from r2med.data.dataset import Query
from r2med.data.runs.run import Run
from r2med.foundation.core.activities import MAX_DOCUMENTS, Activity, ActivityKind, ListedDocument, Together, doing
from r2med.systems.retrieve.retriever import SearchQuery


def ranking(
    name: str, queries: Sequence[SearchQuery], kind: ActivityKind = "RETRIEVER", depth: int = 0
) -> AbstractContextManager[None]:
    """Say that a stage ranks documents for queries. Its block ends with `DocumentsRanked`."""

    def part(query: Query) -> Activity:
        facts = {"query.id": query.id}
        return Activity(name, kind, facts, query.text, depth=depth, topic=query.id, within=query.id)

    return doing(lambda: Together(name, [part(each.query) for each in queries]))


def listed_run(run: Run, corpus: Corpus) -> list[list[ListedDocument]]:
    """Return the best documents of each query of a run."""
    listed = []
    for rows, scores, count in zip(run.rows, run.scores, run.found, strict=True):
        best = rows[: min(MAX_DOCUMENTS, count)]
        found = zip(run.documents.ids(best), scores.tolist(), best.tolist(), strict=False)
        listed.append([ListedDocument(id, score, partial(corpus.text, row)) for id, score, row in found])
    return listed
