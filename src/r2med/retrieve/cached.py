"""A search as an artefact: asked again with the same queries over the same corpus, it is read back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from r2med.data.corpus import Corpus
from r2med.data.dataset_cards import Instruction
from r2med.retrieve.contracts import Retriever, SearchQuery
from r2med.retrieve.run import Run
from r2med.store import Store, digest
from r2med.store.files import write_array

VERSION = 4


@dataclass(frozen=True)
class Searched:
    """A run, how long each step took when it was made, and what models used: for the search, and for the corpus."""

    run: Run
    timings: dict[str, float]
    usage: dict[str, float]
    prepared: dict[str, float]


def cached_search(
    retriever: Retriever,
    corpus: Corpus,
    queries: Sequence[SearchQuery],
    k: int,
    store: Store,
    instruction: Instruction | None = None,
) -> Searched:
    """Search, through the store; each query's excluded documents are left out of its ranking."""
    asked = [[q.query.id, q.query.text, q.query.excluded, q.generated, q.method, q.copies, q.terms] for q in queries]
    key = digest(["run", VERSION, retriever.describe(instruction), corpus.fingerprint, asked, k])

    def build(folder: Path) -> dict[str, Any]:
        searcher = retriever.index(corpus, store, instruction)
        excluded = {q.query.id: corpus.rows(q.query.excluded) for q in queries if q.query.excluded}
        spare = max(map(len, excluded.values()), default=0)
        started = time.perf_counter()
        run = searcher.search(queries, k + spare)
        # Where a searcher knows better it says so itself: one whose parts were read back took longer than this.
        timings = {"search": time.perf_counter() - started, **searcher.timings}
        if excluded:
            run = run.without(excluded, k)
        write_array(folder / "rows.npy", run.rows)
        write_array(folder / "scores.npy", run.scores)
        return {"timings": timings, "usage": searcher.usage(), "prepared": dict(searcher.prepared)}

    artefact = store.make("run", key, build)
    run = Run(tuple(q.query.id for q in queries), artefact.array("rows"), artefact.array("scores"), corpus)
    timings = {**artefact.meta["timings"], "run": artefact.meta["seconds"]}
    return Searched(run, timings, artefact.meta["usage"], artefact.meta["prepared"])
