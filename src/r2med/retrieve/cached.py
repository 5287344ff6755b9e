"""A search as an artefact: asked again with the same queries over the same corpus, it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.cost import Cost
from r2med.data import Dataset
from r2med.retrieve.retriever import Retriever, Searched, SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store, digest
from r2med.store.files import write_array

VERSION = 5


def cached_search(
    retriever: Retriever, dataset: Dataset, queries: Sequence[SearchQuery], k: int, store: Store
) -> Searched:
    """Search, through the store; each query's excluded documents are left out of its ranking."""
    corpus = dataset.corpus
    asked = [query.key for query in queries]
    key = digest(["run", VERSION, retriever.describe(dataset), corpus.fingerprint, asked, k])

    def build(folder: Path) -> dict[str, Any]:
        searcher = retriever.index(dataset, store)
        excluded = {query.query.id: corpus.rows(query.query.excluded) for query in queries if query.query.excluded}
        spare = max(map(len, excluded.values()), default=0)
        searched = searcher.search(queries, k + spare)
        run = searched.run.without(excluded, k) if excluded else searched.run
        write_array(folder / "rows.npy", run.rows)
        write_array(folder / "scores.npy", run.scores)
        return {"cost": searched.cost.as_dict(), "prepared": searched.prepared.as_dict()}

    artefact = store.make("run", key, build)
    run = Run(tuple(query.query.id for query in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    return Searched(run, Cost.from_dict(artefact.meta["cost"]), Cost.from_dict(artefact.meta["prepared"]))
