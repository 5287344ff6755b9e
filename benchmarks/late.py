"""Late interaction search on random vectors: seconds of a search.

    python benchmarks/late.py                                        # small, on a CPU
    python benchmarks/late.py --device cuda --documents 60000 --queries 876 --query-tokens 128

Documents have --tokens vectors of 128 numbers each, in half precision. Needs the extra `dense`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.models.encoders.devices import gpu_of
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.late.maxsim import TokenIndex, search_maxsim

SHARD = 512
TOKEN_DIMENSION = 128


def unit_vectors(rng: np.random.Generator, count: int, dimension: int, kind: Any = np.float32) -> Any:
    rows = rng.standard_normal((count, dimension), dtype=np.float32)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(kind)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    found = work()
    return time.perf_counter() - started, found


def late(rng: np.random.Generator, options: argparse.Namespace, ranks: Any) -> None:
    shards = []
    for start in range(0, options.documents, SHARD):
        size = min(SHARD, options.documents - start)
        vectors = unit_vectors(rng, size * options.tokens, TOKEN_DIMENSION, np.float16)
        offsets = np.arange(0, (size + 1) * options.tokens, options.tokens, dtype=np.int64)
        shards.append((start, Ragged({"vectors": vectors}, offsets, Cost())))
    index = TokenIndex(shards)
    queries = [unit_vectors(rng, options.query_tokens, TOKEN_DIMENSION) for _ in range(options.queries)]
    took, _ = seconds(lambda: index.longest)
    print(f"reading all lengths: {took:.2f} s")
    for name, asked in (("first search", queries), ("search", queries), ("one question", queries[:1])):
        took, _ = seconds(lambda asked=asked: search_maxsim(asked, index, options.k, ranks, gpu=gpu_of(options.device)))
        print(f"{name}: {len(asked)} queries in {took:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    for name, value in {"documents": 2000, "queries": 20, "tokens": 300, "query-tokens": 32, "k": 100}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    ranks = np.arange(options.documents, dtype=np.int32)
    late(rng, options, ranks)


if __name__ == "__main__":
    main()
