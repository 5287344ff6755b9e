"""Exact search of a large corpus by a cluster: nodes that hold shards propose their nearest documents, and this machine
searches what was proposed. So the ranking, and the arithmetic behind it, is that of a search on this machine alone.

Vectors do not travel: sending them takes as long as multiplying them here. Nodes hold those of a shared folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.engine.work import THREADS, Engine, Needs, Work
from r2med.retrieve.dense.exact_scores import Rows
from r2med.retrieve.dense.exact_search import search_exact
from r2med.store import Artefact, Store

GROUP = 64
"""Shards that are searched together."""

WORTHWHILE = 4
"""Documents of the corpus for each that may be proposed: below that, most would be searched twice."""


@dataclass(frozen=True)
class ShardGroup:
    """Consecutive shards, by the keys of their vectors."""

    keys: tuple[str, ...]
    start: int
    ranks: Rows
    """Of their documents, for ties."""


@dataclass(frozen=True)
class ProposeNearest(Work[ShardGroup, Rows]):
    """Finds the rows of a group that are among the k nearest of any query; all of them where the vectors are not."""

    queries: Vectors
    k: int
    cosine: bool
    memory: int

    def __call__(self, group: ShardGroup, store: Store) -> Rows:
        """Return the rows, ascending."""
        held = [store.get("vectors", key) for key in group.keys]
        shards = [shard for shard in held if shard is not None]
        if len(shards) < len(held):
            return np.arange(group.start, group.start + len(group.ranks), dtype=np.int32)
        blocks = [(shard.meta["start"] - group.start, shard.array("vectors")) for shard in shards]
        hits = search_exact(self.queries, blocks, self.k, group.ranks, cosine=self.cosine, memory=self.memory)
        return np.unique(np.concatenate([rows for rows, _ in hits])) + np.int32(group.start)


def search_by_nodes(
    shards: Sequence[Artefact], work: ProposeNearest, ranks: Rows, engine: Engine, store: Store | None
) -> list[tuple[Rows, Vectors]] | None:
    """Return what `search_exact` does of all shards; None where nodes would save nothing."""
    few = len(work.queries) * work.k * WORTHWHILE <= len(ranks)
    if engine is THREADS or store is None or not few:
        return None
    groups = [shards[at : at + GROUP] for at in range(0, len(shards), GROUP)]
    starts = [group[0].meta["start"] for group in groups]
    items = (
        ShardGroup(tuple(shard.path.name for shard in group), start, ranks[start:end])
        for group, start, end in zip(groups, starts, [*starts[1:], len(ranks)], strict=True)
    )
    proposed = {group.start: rows for group, rows in engine.map(work, items, store, Needs(gpu=True))}
    rows = np.concatenate([proposed[start] for start in starts])
    blocks = _blocks(shards, rows)
    hits = search_exact(work.queries, blocks, work.k, ranks[rows], cosine=work.cosine, memory=work.memory)
    return [(rows[positions], scores) for positions, scores in hits]


def _blocks(shards: Sequence[Artefact], rows: Rows) -> Iterator[tuple[int, Vectors]]:
    """Yield the vectors of some rows, ascending, each block with the position of its first row among them."""
    for shard in shards:
        start, vectors = shard.meta["start"], shard.array("vectors")
        first, end = np.searchsorted(rows, [start, start + len(vectors)])
        if end - first == len(vectors):
            yield int(first), vectors
        elif end > first:
            yield int(first), vectors[rows[first:end] - start]
