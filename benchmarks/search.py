"""Exact dense search against its peers, in one run: seconds, and the share of the machine's own sgemm rate.

    python benchmarks/search.py                   # 60,000 × 1,024 documents, 120 queries, top 1000
    python benchmarks/search.py --shard 4096      # documents as mapped files of 4,096 rows, as the store has them
    python benchmarks/search.py --device cuda --documents 10000000 --queries 876 --dtype float16    # made on the GPU

Contenders take turns in one process and the best of each counts, so that a busy machine wrongs none of them. The very
first search is timed once, before anything else ran: it also takes the lengths of the documents, which later searches
of the same corpus have. "One question" is compared with the bare product of one query.
The bare product writes into an array that it is given; its fastest form (NumPy's or torch's own) is the machine's
rate. On a GPU the limits are measured too: the product in half precision, pinned memory to the GPU, and the host's
copy into pinned memory. Needs the extra `models` and the group `benchmark`; a peer that is not installed is left out
and named.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.util
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from r2med.systems.retrieve.exact.cpu_products import SearchCache
from r2med.systems.retrieve.exact.exact_search import search_exact

BEIR_CHUNK = 50_000
Contenders = dict[str, Callable[[], Any]]


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


def contenders(queries: Any, documents: Any, blocks: list[tuple[int, Any]], k: int) -> Contenders:
    ranks = np.random.default_rng(3).permutation(len(documents)).astype(np.int32)
    out = np.empty((len(queries), len(documents)), np.float32)
    # The documents of this run are in memory anyway; those of a store are mapped files.
    memory = 4 * documents.nbytes + (2 << 30)

    cache, one = SearchCache(), queries[:1]
    search = partial(search_exact, blocks=blocks, k=k, ranks=ranks, device="cpu", memory=memory)
    found: Contenders = {
        "sgemm, numpy": lambda: np.matmul(queries, documents.T, out=out),
        "r2med": lambda: search(queries, cache=cache),
        "r2med, cosine": lambda: search(queries, cache=cache, cosine=True),
        "r2med, lengths unknown": lambda: search(queries),
        "product of one query": lambda: np.matmul(one, documents.T, out=out[:1]),
        "r2med, one question": lambda: search(one, cache=cache),
    }
    if importlib.util.find_spec("torch"):
        import torch

        q, d, o = (torch.from_numpy(array) for array in (queries, documents, out))
        found["sgemm, torch"] = lambda: torch.matmul(q, d.T, out=o)
        found["BEIR's loop"] = beir_loop(queries, documents, k)
    if importlib.util.find_spec("faiss"):
        import faiss

        index = faiss.IndexFlatIP(documents.shape[1])
        index.add(documents)
        found["faiss IndexFlatIP"] = lambda: index.search(queries, k)
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
        for name, work in found.items():
            if turn >= slow and best[name] > 2 * best["sgemm, numpy"]:
                continue
            time.sleep(0.3)  # libraries' threads wait for more work by spinning, on the cores of whoever is next
            start = time.perf_counter()
            work()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def made_on_gpu(count: int, dimension: int, dtype: str, seed: int, rows: int = 1 << 20) -> list[tuple[int, Any]]:
    """Return unit vectors in blocks, made by the GPU: the host would take minutes."""
    import torch

    generator = torch.Generator("cuda").manual_seed(seed)
    blocks = []
    for start in range(0, count, rows):
        shape = (min(rows, count - start), dimension)
        block = torch.nn.functional.normalize(torch.randn(shape, generator=generator, device="cuda"))
        blocks.append((start, block.to(getattr(torch, dtype)).cpu().numpy()))
    return blocks


def timed_on_gpu(work: Callable[[], Any], repeat: int = 5) -> float:
    import torch

    seconds = []
    for _ in range(repeat):
        torch.cuda.synchronize()
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def rates(device: str, size: int = 1 << 30) -> tuple[float, float, float]:
    """Return the bytes a second from pinned memory to the GPU, into pinned memory, and read from the GPU's own."""
    import torch

    pinned = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    pageable = torch.ones(size, dtype=torch.uint8)
    here, there = (torch.ones(size, dtype=torch.uint8, device=device) for _ in range(2))
    bus = timed_on_gpu(lambda: there.copy_(pinned, non_blocking=True))
    host = timed_on_gpu(lambda: pinned.copy_(pageable))
    return size / bus, size / host, 2 * size / timed_on_gpu(lambda: there.copy_(here))


def on_gpu(args: argparse.Namespace) -> None:
    """Time searches that stream and that find the vectors on the GPU, and what bounds them."""
    import torch

    bus, host, memory = rates(args.device)
    blocks = made_on_gpu(args.documents, args.dimension, args.dtype, seed=1)
    queries = made_on_gpu(args.queries, args.dimension, "float32", seed=2)[0][1]
    ranks = np.random.default_rng(3).permutation(args.documents).astype(np.int32)
    cache = SearchCache()
    search = partial(search_exact, queries, blocks, args.k, ranks, memory=1 << 50, device=args.device)
    lines = {"streamed": timed_on_gpu(search, 2)}
    lines["streamed and kept"] = timed_on_gpu(lambda: search(cache=cache), 1)
    lines["resident"] = timed_on_gpu(lambda: search(cache=cache))
    chunks = [chunk.halves[: len(chunk.rows)] for chunks in cache.on_gpu.values() for chunk in chunks]
    assert len(chunks) and sum(map(len, chunks)) == args.documents, "the vectors do not fit on the GPU: use fewer"
    halves = torch.from_numpy(queries).half().to(args.device)
    lines["product alone, half precision"] = timed_on_gpu(lambda: [halves @ chunk.T for chunk in chunks])
    numbers = args.documents * args.dimension
    lines["halves read from the GPU's memory"] = 2 * numbers / memory
    stored = numbers * np.dtype(args.dtype).itemsize
    lines["vectors over the bus"] = stored / bus
    lines["vectors into pinned memory"] = stored / host
    print(f"{args.documents:,} × {args.dimension:,} {args.dtype}, {args.queries} queries, top {args.k}, {args.device}")
    print(f"GPU memory {memory / 1e9:.0f} GB/s, bus {bus / 1e9:.1f} GB/s, host's copy {host / 1e9:.1f} GB/s")
    for name, seconds in lines.items():
        print(f"{name:36} {seconds:8.4f} s")
    by_cpu = search_exact(queries[: args.checked], blocks, args.k, ranks, memory=1 << 50, device="cpu")
    pairs = list(zip(by_cpu, search(cache=cache), strict=False))
    same = sum(_ranking(*a, ranks) == _ranking(*b, ranks) for a, b in pairs)
    print(f"rankings equal to the CPU's: {same} of {len(pairs)}")


def _ranking(rows: Any, scores: Any, ranks: Any) -> list[int]:
    return rows[np.lexsort((-ranks[rows], -scores))].tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--dimension", type=int, default=1024)
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("-k", type=int, default=1000)
    parser.add_argument("--shard", type=int, default=0, help="rows of a mapped file; 0: one array in memory")
    parser.add_argument("--repeat", type=int, default=30, help="turns of each contender; the best counts")
    parser.add_argument("--device", default="cpu", help="cpu, or a GPU: cuda, cuda:1")
    parser.add_argument("--dtype", default="float16", help="of the documents for a GPU: float16 or float32")
    parser.add_argument("--checked", type=int, default=8, help="queries that the CPU searches too, beside a GPU")
    parser.add_argument("--only", help="contenders besides the products, separated by semicolons")
    args = parser.parse_args()
    if args.device != "cpu":
        return on_gpu(args)
    documents = unit_vectors(args.documents, args.dimension, seed=1)
    queries = unit_vectors(args.queries, args.dimension, seed=2)
    with tempfile.TemporaryDirectory() as folder:
        blocks = in_blocks(documents, args.shard, Path(folder))
        found = contenders(queries, documents, blocks, args.k)
        if args.only:
            wanted = args.only.split(";")
            always = ("sgemm", "product of one", "r2med, one")
            found = {name: work for name, work in found.items() if name in wanted or name.startswith(always)}
        start = time.perf_counter()
        search_exact(queries, blocks, args.k, np.arange(args.documents, dtype=np.int32), device="cpu", memory=1 << 50)
        first = time.perf_counter() - start
        best = {**best_of(found, args.repeat, slow=5), "r2med, first search": first}
    print(f"{args.documents:,} × {args.dimension:,} documents, {args.queries} queries, top {args.k}")
    print(f"{'':22} {'seconds':>8} {'of sgemm':>9} {'GFLOP/s':>8}")
    work = 2e-9 * args.documents * args.dimension * args.queries
    fastest = min(seconds for name, seconds in best.items() if name.startswith("sgemm"))
    for name, seconds in best.items():
        share = f"{fastest / seconds:9.0%} {work / seconds:8.0f}" if "one" not in name else ""
        print(f"{name:22} {seconds:8.4f} {share}")
    print(f"one question: {best['r2med, one question'] / best['product of one query']:.2f} times the bare product")


if __name__ == "__main__":
    main()
