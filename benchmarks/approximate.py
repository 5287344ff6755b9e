"""An approximate index against exact search, in one run: what building takes, what searching takes, and what is missed.

    python benchmarks/approximate.py                       # 200,000 × 384 documents, 120 queries, top 1000
    python benchmarks/approximate.py --documents 1000000 --dimension 1024

Vectors have structure, as those of texts have: a document is about three of a thousand topics, more or less, and about
itself. Vectors without any structure have no neighbours, and no index could find them. Needs the extra `ann`.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from r2med.foundation.engine import cores
from r2med.foundation.store import Store
from r2med.foundation.store.files import write_array
from r2med.models.encoders.encoder import Encoder
from r2med.systems.retrieve.dense.approximate import Hnsw, build_segments
from r2med.systems.retrieve.dense.recall import mean_recall
from r2med.systems.retrieve.exact.exact_search import search_exact
from r2med.systems.retrieve.vectors.vector_shard import VectorShard

EFFORTS = [Hnsw(32, 200), Hnsw(32, 2000)]
TOPICS, DIRECTIONS, ITSELF = 1000, 64, 0.7


def topic_vectors(dimension: int) -> Any:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((DIRECTIONS, dimension), dtype=np.float32)
    return unit_length(rng.standard_normal((TOPICS, DIRECTIONS), dtype=np.float32) @ base)


def vectors_about(topics: Any, count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    weights = rng.standard_exponential((count, 3, 1), dtype=np.float32)
    about = unit_length((weights * topics[rng.integers(0, TOPICS, (count, 3))]).sum(axis=1))
    own = rng.standard_normal(about.shape, dtype=np.float32) / about.shape[1] ** 0.5
    return unit_length(about + ITSELF * own)


def unit_length(rows: Any) -> Any:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def stored_shards(count: int, topics: Any, store: Store) -> list[Any]:
    def made(start: int) -> Any:
        def build(folder: Path) -> dict[str, Any]:
            write_array(
                folder / "vectors.npy", vectors_about(topics, min(Encoder.shard_documents, count - start), start + 2)
            )
            return {"start": start, "cost": {}}

        return VectorShard(store.make("vectors", f"shard{start}", build))

    return [made(start) for start in range(0, count, Encoder.shard_documents)]


def seconds_of(work: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    best = float("inf")
    for _ in range(repeat):
        started = time.perf_counter()
        result = work()
        best = min(best, time.perf_counter() - started)
    return best, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--dimension", type=int, default=384)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("-k", type=int, default=1000)
    parser.add_argument(
        "--memory", type=int, default=2 << 30, help="bytes; a segment that is built takes 1 GiB at most"
    )
    args = parser.parse_args()
    topics = topic_vectors(args.dimension)
    queries = vectors_about(topics, args.queries, 1)
    ranks = np.random.default_rng(3).permutation(args.documents).astype(np.int32)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        shards = stored_shards(args.documents, topics, store)
        blocks = [block for shard in shards for block in shard.blocks]

        def report(name: str, built: str, search: Callable[[Any, int], Any], exact: Any = None) -> Any:
            together, deep = seconds_of(lambda: search(queries, args.k))
            single, _ = seconds_of(lambda: [search(queries[at : at + 1], 10) for at in range(20)])
            hits = deep, search(queries, 10)
            recalls = [mean_recall(*pair, k, ranks) for *pair, k in zip(hits, exact or hits, (args.k, 10), strict=True)]
            shares = [" ".join(f"{share:.3f}" for share in each.values()) for each in recalls]
            print(
                f"{name:24} {built:>29} {together:8.3f} s  {shares[0]} {50 * single:8.1f} ms  {shares[1]}", flush=True
            )
            return hits

        print(f"{args.documents:,} × {args.dimension:,} documents, {args.queries} queries, {cores()} cores")
        heads = f"top {args.k} together, its recall@10, 100, 1000; one query, top 10, its recall@10"
        print(f"{'':24} {'built':>29}   {heads}")
        exact = report("exact", "", lambda q, k: search_exact(q, blocks, k, ranks, device="cpu", memory=args.memory))
        for effort in EFFORTS:
            started, used = time.perf_counter(), time.process_time()
            segments = build_segments(shards, effort, store, memory=args.memory)
            taken, used = time.perf_counter() - started, time.process_time() - used
            bytes_of = sum(path.stat().st_size for path in store.root.glob("ann/*/index.faiss"))
            built = f"{taken:.0f} s ({used:.0f} of cores), {bytes_of >> 20:,} MiB" if used > 1 else "the same"
            report(str(effort), built, lambda q, k, s=segments: s.search(q, blocks, k, ranks), exact)


if __name__ == "__main__":
    main()
