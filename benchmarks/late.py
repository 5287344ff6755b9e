"""Late interaction search (MaxSim) beside the plain computation, in one run: seconds, and how many times as long.

    python benchmarks/late.py                                        # small, on a CPU
    python benchmarks/late.py --device cuda --documents 60000 --queries 876 --query-tokens 128

Documents have --tokens vectors of 128 numbers each, in half precision. The plain computation on a CPU is the float32
product of the same stored vectors, conversion included. On a GPU it is a loop over resident vectors in half precision:
product, best token of each document, sum, top k. Needs the extra `models`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.cpu_products import SearchCache
from r2med.systems.retrieve.exact.exact_search import search_exact

SHARD = 512
TOKEN_DIMENSION = 128
PIECE = 1 << 13
"""Vectors that the plain computation on a CPU converts at a time: more would not fit into its cache."""
PLAIN_QUERIES = 64
PLAIN_DOCUMENTS = 874


def unit_vectors(rng: np.random.Generator, count: int, dimension: int, kind: Any = np.float32) -> Any:
    rows = rng.standard_normal((count, dimension), dtype=np.float32)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(kind)


def best_seconds(work: Callable[[], Any], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def plain_on_cpu(queries: Any, blocks: list[tuple[int, Ragged]]) -> Callable[[], Any]:
    tokens = queries.arrays["vectors"]

    def work() -> None:
        for _, block in blocks:
            vectors = block.arrays["vectors"]
            for at in range(0, len(vectors), PIECE):
                tokens @ vectors[at : at + PIECE].astype(np.float32).T

    return work


def plain_on_gpu(queries: Any, blocks: list[tuple[int, Ragged]], options: argparse.Namespace) -> Callable[[], Any]:
    """Return the plain loop over vectors that are on the GPU. All documents have the same number of tokens."""
    import torch

    tokens = torch.from_numpy(queries.arrays["vectors"]).to(options.device).half()
    vectors = torch.cat([torch.from_numpy(block.arrays["vectors"]).to(options.device) for _, block in blocks])
    width, step = PLAIN_QUERIES * options.query_tokens, PLAIN_DOCUMENTS * options.tokens

    def work() -> None:
        for at in range(0, len(tokens), width):
            asked = tokens[at : at + width]
            parts = [
                (vectors[begin : begin + step] @ asked.T).view(-1, options.tokens, len(asked)).amax(1)
                for begin in range(0, len(vectors), step)
            ]
            scores = torch.cat(parts).view(options.documents, -1, options.query_tokens).sum(2, dtype=torch.float32)
            scores.topk(min(options.k, options.documents), dim=0).values.cpu()

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    sizes = {"documents": 2000, "queries": 20, "tokens": 300, "query-tokens": 32, "k": 1000, "repeat": 5}
    for name, value in sizes.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    blocks = []
    for start in range(0, options.documents, SHARD):
        size = min(SHARD, options.documents - start)
        vectors = unit_vectors(rng, size * options.tokens, TOKEN_DIMENSION, np.float16)
        offsets = np.arange(0, (size + 1) * options.tokens, options.tokens, dtype=np.int64)
        blocks.append((start, Ragged({"vectors": vectors}, offsets, Cost())))
    ranks, cache = np.arange(options.documents, dtype=np.int32), SearchCache()
    print(f"{options.documents:,} documents × {options.tokens} tokens × {TOKEN_DIMENSION}, top {options.k}")
    for count in (options.queries, 1):
        vectors = unit_vectors(rng, count * options.query_tokens, TOKEN_DIMENSION)
        offsets = np.arange(0, (count + 1) * options.query_tokens, options.query_tokens, dtype=np.int64)
        queries = Ragged({"vectors": vectors}, offsets, Cost())

        def search(queries: Ragged = queries) -> Any:
            settings = {"device": options.device, "memory": 1 << 50, "cache": cache}
            return search_exact(queries, blocks, options.k, ranks, **settings)

        plain = plain_on_cpu(queries, blocks) if options.device == "cpu" else plain_on_gpu(queries, blocks, options)
        if count > 1:
            print(f"first search: {best_seconds(search, 1):.3f} s")
        taken, bare = [], []
        for _ in range(options.repeat):  # in turns, so that a busy machine slows both
            taken.append(best_seconds(search, 1))
            bare.append(best_seconds(plain, 1))
        ratio = min(taken) / min(bare)
        print(f"{count} queries: {min(taken):.4f} s; plain: {min(bare):.4f} s; {ratio:.2f} times as long")


if __name__ == "__main__":
    main()
