"""Exact MaxSim: the sum over a query's tokens of the best product with a token of the document.

All products are computed in float32, a tile of documents at a time, here or on a GPU. They are off by at most a bound
that follows from the lengths of the vectors. Documents within twice the bound of the k-th best are scored again in
float64 from the stored vectors, and these scores, rounded to float32, rank them. Ties go by data/runs/ties.py.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.data.runs.ties import best, kth_best
from r2med.models.encoders.encoder import Vectors
from r2med.models.encoders.ragged import Offsets, Ragged

UNIT = 2.0**-24
"""The largest relative error of one float32 operation."""
TILE_BYTES, GPU_TILE_BYTES = 1 << 26, 1 << 32
"""Products of a tile of documents with the tokens of a group of queries, at most; a long document may take more."""
QUERY_TOKENS, GPU_QUERY_TOKENS = 1 << 12, 1 << 15
"""Tokens of queries that are searched together. Documents are read once for each group."""
DOCUMENTS_AT_ONCE = 64
"""Documents that are scored in float64 together: one by one, a product would be over before its threads have met."""

Hits = tuple[npt.NDArray[np.int32], Vectors]


def maxsim(query: npt.NDArray[Any], document: npt.NDArray[Any]) -> float:
    """Return the score of two texts in float64, from a row for each token of either."""
    products = query.astype(np.float64) @ document.astype(np.float64).T
    return float(products.max(axis=1).sum())


class TokenIndex:
    """The token vectors of a corpus, memory-mapped shard by shard."""

    def __init__(self, shards: Sequence[tuple[int, Ragged]]) -> None:
        self._shards = tuple(shards)
        self._starts = [start for start, _ in self._shards]

    def __len__(self) -> int:
        start, last = self._shards[-1]
        return start + len(last)

    def tokens(self, row: int) -> npt.NDArray[Any]:
        """Return the vectors of a document."""
        start, shard = self._shards[bisect_right(self._starts, row) - 1]
        return shard.rows("vectors", row - start)

    @cached_property
    def longest(self) -> float:
        """The length of the longest vector."""
        squares = (np.square(part, dtype=np.float32).sum(axis=1).max() for _, part, _ in self.tiles(1 << 16))
        return float(np.sqrt(max(squares, default=0.0))) * (1 + 1e-4)  # more than the rounding of these sums

    def tiles(self, tokens: int) -> Iterator[tuple[int, npt.NDArray[Any], Offsets]]:
        """Yield the first row, the vectors and their beginnings of documents that have at most so many tokens."""
        for start, shard in self._shards:
            first = 0
            while first < len(shard):
                end = int(np.searchsorted(shard.offsets, shard.offsets[first] + tokens, side="right")) - 1
                end = max(first + 1, end)
                here = slice(shard.offsets[first], shard.offsets[end])
                yield start + first, shard.arrays["vectors"][here], shard.offsets[first:end] - shard.offsets[first]
                first = end


def search_maxsim(
    queries: Sequence[Vectors],
    index: TokenIndex,
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    memory: int = 2 << 30,
    gpu: str | None = None,
) -> list[Hits]:
    """Return each query's k best (rows, scores), in no particular order."""
    hits: list[Hits] = []
    rescore = partial(_exact_on_gpu, gpu=gpu) if gpu else _exact
    for group in _groups(queries, len(index), memory, GPU_QUERY_TOKENS if gpu else QUERY_TOKENS):
        scores = _fast_scores(group, index, gpu)
        hits += [_decided(*each, index, k, ranks, rescore) for each in zip(group, scores, strict=True)]
    return hits


def _groups(queries: Sequence[Vectors], documents: int, memory: int, most: int) -> Iterator[list[Vectors]]:
    """Yield queries that are searched together: few tokens, and scores of all documents that fit into memory."""
    at_once = max(1, memory // 4 // (4 * max(1, documents)))
    group: list[Vectors] = []
    for query in queries:
        if group and (len(group) == at_once or sum(map(len, group)) + len(query) > most):
            yield group
            group = []
        group.append(np.ascontiguousarray(query, np.float32))
    if group:
        yield group


def _fast_scores(queries: Sequence[Vectors], index: TokenIndex, gpu: str | None) -> Vectors:
    """Return the float32 scores of all documents, a line for each query."""
    tokens = np.concatenate(queries)
    starts = np.append(0, np.cumsum([len(query) for query in queries]))[:-1]
    score = _scorer_on_gpu(tokens, starts, gpu) if gpu else _scorer(tokens, starts)
    scores = np.empty((len(queries), len(index)), np.float32)
    tile_bytes = GPU_TILE_BYTES if gpu else TILE_BYTES
    for first, vectors, beginnings in index.tiles(max(1, tile_bytes // (4 * len(tokens)))):
        scores[:, first : first + len(beginnings)] = score(vectors, beginnings)
    return scores


Scorer = Callable[[npt.NDArray[Any], Offsets], Vectors]
"""Gives the scores of some documents, a line for each query, from their vectors and where each document begins."""


def _scorer(tokens: Vectors, starts: Offsets) -> Scorer:
    def score(vectors: npt.NDArray[Any], beginnings: Offsets) -> Vectors:
        # A line for each token of a query: along lines, NumPy finds the largest a hundred times as fast as across them.
        products = tokens @ vectors.astype(np.float32).T
        nearest = np.maximum.reduceat(products, beginnings, axis=1)
        sums: Vectors = np.add.reduceat(nearest, starts, axis=0)
        return sums

    return score


def _scorer_on_gpu(tokens: Vectors, starts: Offsets, gpu: str) -> Scorer:
    import torch

    right = torch.from_numpy(tokens).to(gpu).T
    sizes = torch.from_numpy(np.diff(np.append(starts, len(tokens)))).to(gpu)

    def score(vectors: npt.NDArray[Any], beginnings: Offsets) -> Vectors:
        # The bound holds for float32. TF32, which a program may have allowed, would be off by a thousand times as much.
        precision = torch.get_float32_matmul_precision()
        torch.set_float32_matmul_precision("highest")
        products = torch.from_numpy(np.array(vectors)).to(gpu).float() @ right
        torch.set_float32_matmul_precision(precision)
        lengths = torch.from_numpy(np.diff(np.append(beginnings, len(vectors)))).to(gpu)
        nearest = torch.segment_reduce(products, "max", lengths=lengths, axis=0, unsafe=True)
        sums = torch.segment_reduce(nearest.T.contiguous(), "sum", lengths=sizes, axis=0, unsafe=True)
        scores: Vectors = sums.cpu().numpy()
        return scores

    return score


def _decided(
    query: Vectors,
    fast: Vectors,
    index: TokenIndex,
    k: int,
    ranks: npt.NDArray[np.int32],
    rescore: Callable[[Vectors, Sequence[npt.NDArray[Any]]], list[float]],
) -> Hits:
    """Return the k best documents by float64 scores, of all that may be among them by the fast scores."""
    lengths = np.sqrt(np.einsum("ij,ij->i", query, query, dtype=np.float64))
    error = float(lengths.sum()) * index.longest * (query.shape[1] + len(query) + 4) * UNIT
    floor = kth_best(fast, k) - 2 * error
    rows = np.flatnonzero(fast >= floor).astype(np.int32)
    scores = np.array(rescore(query, [index.tokens(int(row)) for row in rows])).astype(np.float32)
    chosen = best(scores, k, ranks[rows])
    return rows[chosen], scores[chosen]


def _exact(query: Vectors, documents: Sequence[npt.NDArray[Any]]) -> list[float]:
    """Return the float64 scores of documents."""
    left, scores = query.astype(np.float64), []
    for some in _some(documents):
        beginnings = np.append(0, np.cumsum([len(document) for document in some]))[:-1]
        products = left @ np.concatenate(some).astype(np.float64).T
        scores += np.maximum.reduceat(products, beginnings, axis=1).sum(axis=0).tolist()
    return scores


def _exact_on_gpu(query: Vectors, documents: Sequence[npt.NDArray[Any]], gpu: str) -> list[float]:
    """Return the float64 scores of documents."""
    import torch

    right, scores = torch.from_numpy(query).to(gpu).double().T, []
    for some in _some(documents):
        products = torch.from_numpy(np.concatenate(some)).to(gpu).double() @ right
        lengths = torch.tensor([len(document) for document in some], device=gpu)
        nearest = torch.segment_reduce(products, "max", lengths=lengths, axis=0, unsafe=True)
        scores += nearest.sum(dim=1).tolist()
    return scores


def _some(documents: Sequence[npt.NDArray[Any]]) -> Iterator[Sequence[npt.NDArray[Any]]]:
    for at in range(0, len(documents), DOCUMENTS_AT_ONCE):
        yield documents[at : at + DOCUMENTS_AT_ONCE]
