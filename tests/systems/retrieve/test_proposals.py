"""Nodes propose documents and this machine decides. The hits equal those of one search over all documents."""

import numpy as np
import pytest

from r2med.foundation.engine.work import Threads
from r2med.foundation.store import Store
from r2med.foundation.store.files import write_array
from r2med.systems.retrieve.dense import proposals
from r2med.systems.retrieve.dense.proposals import ProposeNearest, search_by_nodes
from r2med.systems.retrieve.exact.exact_search import search_exact

SIZE, COUNT, K = 50, 40, 7


@pytest.fixture
def shards(store):
    rng = np.random.default_rng(5)
    vectors = rng.standard_normal((SIZE * COUNT, 24)).astype(np.float32)
    vectors[::9] = vectors[3]  # ties

    def made(start):
        def build(folder):
            write_array(folder / "vectors.npy", vectors[start : start + SIZE])
            return {"start": start, "cost": {}}

        return store.make("vectors", f"key{start}", build)

    return [made(start) for start in range(0, len(vectors), SIZE)]


class Node(Threads):
    """An engine with another store. It records how many rows were proposed."""

    def __init__(self, store):
        self._store, self.proposed = store, 0

    def map(self, work, items, store, needs):
        for item, rows in super().map(work, items, self._store, needs):
            self.proposed += len(rows)
            yield item, rows


@pytest.mark.parametrize("cosine", [False, True])
def test_the_proposals_of_nodes_give_the_same_hits_bit_for_bit(shards, store, monkeypatch, cosine):
    monkeypatch.setattr(proposals, "GROUP_SHARDS", 6)
    ranks = np.random.default_rng(6).permutation(SIZE * COUNT).astype(np.int32)
    queries = np.random.default_rng(7).standard_normal((5, 24)).astype(np.float32)
    blocks = [(shard.meta["start"], shard.array("vectors")) for shard in shards]
    expected = search_exact(queries, blocks, K, ranks, cosine=cosine)
    work = ProposeNearest(queries, K, cosine, 2 << 30)
    for node, proposed in ((Node(store), 5 * K * 7), (Node(Store(store.root / "empty")), SIZE * COUNT)):
        hits = search_by_nodes(shards, work, ranks, node, store)
        assert [sorted(zip(*map(np.ndarray.tolist, hit), strict=True)) for hit in hits] == [
            sorted(zip(*map(np.ndarray.tolist, hit), strict=True)) for hit in expected
        ]
        assert 0 < node.proposed <= proposed
    monkeypatch.setattr(proposals, "MIN_DOCUMENTS_PER_PROPOSAL", 1000)
    assert search_by_nodes(shards, work, ranks, Node(store), store) is None
