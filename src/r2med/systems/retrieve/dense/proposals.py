"""Exact search of a large corpus on a cluster.

Nodes that hold shards propose their nearest documents, and this machine searches the proposed documents. So the ranking
and the arithmetic are the same as in a search on this machine alone. Vectors are not sent, because that takes as long
as multiplying them here. Nodes read them from a shared folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.foundation.engine.work import Engine, Work, WorkNeeds
from r2med.foundation.store import Artefact, Store
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.exact.exact_search import search_exact
from r2med.systems.retrieve.exact.text_vectors import Rows

GROUP_SHARDS = 64
"""Number of shards that are searched together."""

MIN_DOCUMENTS_PER_PROPOSAL = 4
"""Minimum number of documents in the corpus for each proposed document. With fewer, most would be searched twice."""


@dataclass(frozen=True)
class ShardGroup:
    """Consecutive shards, given by the keys of their vectors."""

    keys: tuple[str, ...]
    start: int
    ranks: Rows
    """Ranks of their documents, for ties."""


@dataclass(frozen=True)
class ProposeNearest(Work[ShardGroup, Rows]):
    """Work that finds the rows of a group among the k nearest of any query.

    It returns all rows if the node does not have the vectors.
    """

    queries: Vectors
    k: int
    cosine: bool
    memory: int

    def __call__(self, group: ShardGroup, store: Store) -> Rows:
        """Return the rows in ascending order."""
        stored = [store.get("vectors", key) for key in group.keys]
        shards = [shard for shard in stored if shard is not None]
        if len(shards) < len(stored):
            return np.arange(group.start, group.start + len(group.ranks), dtype=np.int32)
        blocks = [(shard.meta["start"] - group.start, shard.array("vectors")) for shard in shards]
        hits = search_exact(self.queries, blocks, self.k, group.ranks, cosine=self.cosine, memory=self.memory)
        return np.unique(np.concatenate([rows for rows, _ in hits])) + np.int32(group.start)


def search_by_nodes(
    shards: Sequence[Artefact], work: ProposeNearest, ranks: Rows, engine: Engine, store: Store
) -> list[tuple[Rows, Vectors]] | None:
    """Return the result of `search_exact` over all shards, or None if nodes would not save time."""
    if len(work.queries) * work.k * MIN_DOCUMENTS_PER_PROPOSAL > len(ranks):
        return None
    groups = [shards[at : at + GROUP_SHARDS] for at in range(0, len(shards), GROUP_SHARDS)]
    starts = [group[0].meta["start"] for group in groups]
    items = (
        ShardGroup(tuple(shard.path.name for shard in group), start, ranks[start:end])
        for group, start, end in zip(groups, starts, [*starts[1:], len(ranks)], strict=True)
    )
    proposed = {group.start: rows for group, rows in engine.map(work, items, store, WorkNeeds(gpu=True))}
    rows = np.concatenate([proposed[start] for start in starts])
    blocks = _blocks(shards, rows)
    hits = search_exact(work.queries, blocks, work.k, ranks[rows], cosine=work.cosine, memory=work.memory)
    return [(rows[positions], scores) for positions, scores in hits]


def _blocks(shards: Sequence[Artefact], rows: Rows) -> Iterator[tuple[int, Vectors]]:
    """Yield the vectors of some ascending rows, each block with the position of its first row among them."""
    for shard in shards:
        start, vectors = shard.meta["start"], shard.array("vectors")
        first, end = np.searchsorted(rows, [start, start + len(vectors)])
        if end - first == len(vectors):
            yield int(first), vectors
        elif end > first:
            yield int(first), vectors[rows[first:end] - start]
