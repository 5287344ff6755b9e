"""Exact dense search against its peers, in one run: seconds, and the share of the machine's own sgemm rate.

    python benchmarks/search.py                   # 60,000 × 1,024 documents, 120 queries, top 1000
    python benchmarks/search.py --shard 4096      # documents as mapped files of 4,096 rows, as the store has them

Contenders take turns in one process and the best of each counts, so that a busy machine wrongs none of them.
The bare product writes into an array that it is given; its fastest form (NumPy's or torch's own) is the rate of
contenders that use that library, torch's for the others. Needs the extras `dense` and `benchmark`; a peer that
is not installed is left out and named.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from r2med.retrieve.dense.exact import search_exact

BEIR_CHUNK = 50_000
Contenders = dict[str, tuple[str, Callable[[], Any]]]
"""Name to (the product it is measured by, the work)."""


def unit_vectors(count: int, dimension: int, seed: int) -> Any:
    rows = np.random.default_rng(seed).standard_normal((count, dimension), dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def beir_loop(queries: Any, documents: Any, k: int) -> Callable[[], Any]:
    """BEIR's exact search: a chunk's product, topk of it, and a Python heap a query to merge chunks."""
    import torch

    q, d = torch.from_numpy(queries), torch.from_numpy(documents)

    def work() -> Any:
        heaps: list[list[tuple[float, str]]] = [[] for _ in queries]
        for start in range(0, len(d), BEIR_CHUNK):
            scores = torch.mm(q, d[start : start + BEIR_CHUNK].T)
            scores[torch.isnan(scores)] = -1
            best, places = torch.topk(scores, min(k + 1, scores.shape[1]), dim=1, largest=True, sorted=False)
            for heap, values, rows in zip(heaps, best.tolist(), places.tolist(), strict=True):
                for value, row in zip(values, rows, strict=True):
                    if len(heap) < k:
                        heapq.heappush(heap, (value, str(start + row)))
                    else:
                        heapq.heappushpop(heap, (value, str(start + row)))
        return heaps

    return work


def contenders(queries: Any, documents: Any, blocks: list[tuple[int, Any]], k: int, device: str) -> Contenders:
    ranks = np.random.default_rng(3).permutation(len(documents)).astype(np.int32)
    out = np.empty((len(queries), len(documents)), np.float32)
    found: Contenders = {
        "sgemm, numpy": ("sgemm, numpy", lambda: np.matmul(queries, documents.T, out=out)),
        "r2med, numpy": ("sgemm, numpy", lambda: search_exact(queries, blocks, k, ranks, device="numpy")),
    }
    if importlib.util.find_spec("torch"):
        import torch

        q, d, o = (torch.from_numpy(array) for array in (queries, documents, out))
        found["sgemm, torch"] = ("sgemm, torch", lambda: torch.matmul(q, d.T, out=o))
        found["r2med, torch"] = ("sgemm, torch", lambda: search_exact(queries, blocks, k, ranks, device=device))
        found["r2med, torch, cosine"] = (
            "sgemm, torch",
            lambda: search_exact(queries, blocks, k, ranks, device=device, cosine=True),
        )
        found["BEIR's loop"] = ("sgemm, torch", beir_loop(queries, documents, k))
    if importlib.util.find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatIP(documents.shape[1])
        index.add(documents)
        found["faiss IndexFlatIP"] = (
            "sgemm, torch" if "sgemm, torch" in found else "sgemm, numpy",
            lambda: index.search(queries, k),
        )
    for name in ("torch", "faiss"):
        if not importlib.util.find_spec(name):
            print(f"{name} is not installed: left out", file=sys.stderr)
    return found


def in_blocks(documents: Any, shard: int, folder: Path) -> list[tuple[int, Any]]:
    if not shard:
        return [(0, documents)]
    np.save(folder / "documents.npy", documents)
    mapped = np.load(folder / "documents.npy", mmap_mode="r")
    return [(start, mapped[start : start + shard]) for start in range(0, len(documents), shard)]


def best_of(found: Contenders, repeat: int, slow: int) -> dict[str, float]:
    """Return each contender's best time; after `slow` rounds those slower than twice the product have had enough."""
    best = dict.fromkeys(found, float("inf"))
    for turn in range(repeat):
        for name, (product, work) in found.items():
            if turn >= slow and best[name] > 2 * best[product]:
                continue
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("-k", type=int, default=1000)
    parser.add_argument("--shard", type=int, default=0, help="rows of a mapped file; 0: one array in memory")
    parser.add_argument("--repeat", type=int, default=30, help="turns of each contender; the best counts")
    parser.add_argument("--device", default="cpu", help="where r2med's torch works: cpu, cuda, …")
    parser.add_argument("--only", help="contenders besides the products, separated by semicolons")
    args = parser.parse_args()
    documents = unit_vectors(args.documents, args.dimension, seed=1)
    queries = unit_vectors(args.queries, args.dimension, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        blocks = in_blocks(documents, args.shard, Path(folder))
        found = contenders(queries, documents, blocks, args.k, args.device)
        if args.only:
            wanted = args.only.split(";")
            found = {name: c for name, c in found.items() if name in wanted or name.startswith("sgemm")}
        best = best_of(found, args.repeat, slow=5)
    print(f"{args.documents:,} × {args.dimension:,} documents, {args.queries} queries, top {args.k}")
    print(f"{'':22} {'seconds':>8} {'of sgemm':>9} {'GFLOP/s':>8}")
    work = 2e-9 * args.documents * args.dimension * args.queries
    for name, seconds in best.items():
        print(f"{name:22} {seconds:8.4f} {best[found[name][0]] / seconds:9.0%} {work / seconds:8.0f}")


if __name__ == "__main__":
    main()
