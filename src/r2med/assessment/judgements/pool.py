"""The pool of a dataset: the documents without a label that systems return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from r2med.data.dataset import Dataset
from r2med.data.overlays import Aspect
from r2med.data.runs.trec import WrittenRun
from r2med.evaluation.records.collection import RecordCollection
from r2med.foundation.core.errors import UserError


@dataclass(frozen=True)
class UnjudgedPool:
    """The documents to label in one dataset: query -> documents, in the order of the best rank."""

    dataset: Dataset
    documents: Mapping[str, tuple[str, ...]]
    systems: tuple[str, ...]
    """The systems that returned them."""

    def __len__(self) -> int:
        """Return the number of pairs of a query and a document."""
        return sum(map(len, self.documents.values()))


def pool(collection: RecordCollection, dataset: Dataset, depth: int, aspect: Aspect = "relevance") -> UnjudgedPool:
    """Return the documents of the first `depth` ranks of every system that have no label.

    Documents are pooled for judged queries only. For the aspect "mimic" only a label of this aspect counts, and a
    query needs an answer. Raises UserError if no system has a ranking of the dataset.
    """
    asked = [query for query in dataset.queries if query.id in dataset.qrels]
    if aspect == "mimic":
        asked = [query for query in asked if query.answer]
        if not asked:
            raise UserError(f"no query of {dataset.name} has an answer, so no passage can argue for another one")
    best: dict[str, dict[str, int]] = {query.id: {} for query in asked}
    systems = []
    for (system, name), kept in collection.cells.items():
        if name != dataset.name or (file := kept.run_file) is None:
            continue
        systems.append(system)
        run = WrittenRun(file, [query.id for query in dataset.queries])
        for query, ranks in best.items():
            known = dataset.qrels[query] if aspect == "relevance" else dataset.mimics.get(query, {})
            for rank, (document, _) in enumerate(run.top(query, depth), 1):
                if document not in known:
                    ranks[document] = min(rank, ranks.get(document, rank))
    if not systems:
        raise UserError(f"there is no ranking of {dataset.name}: make one with r2med run SYSTEM --data {dataset.name}")
    ordered = {query: tuple(sorted(ranks, key=lambda each: (ranks[each], each))) for query, ranks in best.items()}
    return UnjudgedPool(
        dataset, {query: documents for query, documents in ordered.items() if documents}, tuple(systems)
    )
