"""Search by quantised vectors, a byte or a bit for each number, and rank the best candidates by the stored vectors.

What is exact: the product of two quantised vectors is a sum of integers, computed without rounding on every device. So
the candidates of a query, `rescore` times as many as are wanted, are the same everywhere, ties by the rule of
systems/retrieve/ties.py. The candidates get the scores of exact search. A document is missed only if quantisation puts
it below the candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.dense.exact_scores import Block, Positions, Rows
from r2med.systems.retrieve.dense.rescoring import score_proposed
from r2med.systems.retrieve.ties import best

Codes = npt.NDArray[np.int8]
Found = tuple[Positions, Positions, Vectors]
"""Pairs of a query and a document of a tile with their scores: lines ascending, columns, scores."""

EXACT_SUM = 1 << 24
"""Integers up to this are exact in float32."""
TILE_ROWS = 1 << 14
"""Documents whose products are looked at together."""
QUERIES_AT_ONCE = 512
"""Queries that are multiplied with a tile at a time."""


@dataclass(frozen=True)
class Int8:
    """One byte for each number: the largest of a vector becomes 127."""

    rescore: int
    """Candidates for each wanted document that are scored again; 0: the products of codes decide."""
    name: ClassVar[str] = "int8"
    largest: ClassVar[int] = 127
    """The largest absolute value of a code."""

    def codes(self, vectors: Vectors) -> tuple[Codes, Vectors]:
        """Return whole numbers from -127 to 127, and the step between two of them for each vector."""
        steps = np.abs(vectors).max(axis=1, initial=0.0) / np.float32(self.largest)
        divided = np.divide(vectors, steps[:, None], out=np.zeros_like(vectors), where=steps[:, None] > 0)
        return np.rint(divided).clip(-self.largest, self.largest).astype(np.int8), steps


@dataclass(frozen=True)
class Binary:
    """One bit for each number: 1 if it is above 0. The product of two vectors falls with each bit that differs."""

    rescore: int
    name: ClassVar[str] = "binary"
    largest: ClassVar[int] = 1

    def codes(self, vectors: Vectors) -> tuple[Codes, Vectors]:
        """Return 1 or -1 for each number, and the same scale for every vector."""
        return np.where(vectors > 0, 1, -1).astype(np.int8), np.ones(len(vectors), np.float32)


class CodedBlocks:
    """The codes of a corpus; they stay in memory if they take at most half of what is allowed."""

    def __init__(self, quantiser: Int8 | Binary, blocks: Iterable[Block], cosine: bool, memory: int) -> None:
        self.quantiser, self.cosine = quantiser, cosine
        self.blocks = tuple(blocks)
        self._keeps = sum(block.size for _, block in self.blocks) <= memory // 2
        self._kept: dict[int, tuple[Codes, Vectors]] = {}

    def tiles(self) -> Iterator[tuple[int, Codes, Vectors]]:
        """Yield the first row, the codes and the scales of some documents at a time."""
        for first, block in self.blocks:
            for at in range(0, len(block), TILE_ROWS):
                yield first + at, *self._coded(first + at, block[at : at + TILE_ROWS])

    def _coded(self, first: int, vectors: npt.NDArray[Any]) -> tuple[Codes, Vectors]:
        if first in self._kept:
            return self._kept[first]
        rows = np.asarray(vectors, np.float32)
        codes, scales = self.quantiser.codes(rows)
        if self.cosine and self.quantiser.largest > 1:  # the sign of a number does not depend on the length
            lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))
            scales = np.divide(scales, lengths, out=np.zeros(len(rows)), where=lengths > 0).astype(np.float32)
        if self._keeps:
            self._kept[first] = codes, scales
        return codes, scales


def search_quantised(
    queries: Vectors, coded: CodedBlocks, k: int, ranks: npt.NDArray[np.int32], gpu: str | None = None
) -> list[tuple[Rows, Vectors]]:
    """Return each query's k best (rows, scores) of those that the codes propose, in no particular order."""
    count, groups = k * max(1, coded.quantiser.rescore), range(0, len(queries), QUERIES_AT_ONCE)
    proposed = [
        hits for at in groups for hits in _propose(queries[at : at + QUERIES_AT_ONCE], coded, count, ranks, gpu)
    ]
    if not coded.quantiser.rescore:
        return proposed
    return score_proposed(queries, coded.blocks, [rows for rows, _ in proposed], k, ranks, cosine=coded.cosine)


def _propose(
    queries: Vectors, coded: CodedBlocks, count: int, ranks: npt.NDArray[np.int32], gpu: str | None
) -> list[tuple[Rows, Vectors]]:
    """Return the `count` best rows of each query by the products of codes, with these products."""
    codes, scales = coded.quantiser.codes(np.ascontiguousarray(queries, np.float32))
    find = _finder(codes, scales, coded.quantiser.largest, gpu)
    kept: list[tuple[Rows, Vectors]] = [(np.empty(0, np.int32), np.empty(0, np.float32))] * len(queries)
    floors = np.full(len(queries), -np.inf, np.float32)
    for first, documents, steps in coded.tiles():
        lines, columns, scores = find(documents, steps, floors)
        ends = np.searchsorted(lines, np.arange(len(queries) + 1))
        for line in np.unique(lines):
            here = slice(ends[line], ends[line + 1])
            rows = np.concatenate((kept[line][0], (columns[here] + first).astype(np.int32)))
            together = np.concatenate((kept[line][1], scores[here]))
            chosen = best(together, count, ranks[rows])
            kept[line] = rows[chosen], together[chosen]
            if len(chosen) == count:
                floors[line] = together[chosen].min()
    return kept


def _finder(codes: Codes, scales: Vectors, largest: int, gpu: str | None) -> Callable[[Codes, Vectors, Vectors], Found]:
    """Return the function that scores a tile and gives the pairs that reach the floors of their queries."""
    terms = EXACT_SUM // largest**2
    parts = [slice(at, at + terms) for at in range(0, codes.shape[1], terms)]
    if gpu is not None:
        return _finder_on_gpu(codes, scales, parts, gpu)
    left = [codes[:, part].astype(np.float32) for part in parts]

    def find(documents: Codes, steps: Vectors, floors: Vectors) -> Found:
        total = np.zeros((len(codes), len(documents)))
        for query, part in zip(left, parts, strict=True):
            total += query @ documents[:, part].astype(np.float32).T
        scores = (total * steps * scales[:, None]).astype(np.float32)
        lines, columns = np.nonzero(scores >= floors[:, None])
        return lines, columns, scores[lines, columns]

    return find


def _finder_on_gpu(
    codes: Codes, scales: Vectors, parts: list[slice], gpu: str
) -> Callable[[Codes, Vectors, Vectors], Found]:
    import torch

    left = [torch.from_numpy(codes[:, part]).to(gpu).float() for part in parts]
    of_queries = torch.from_numpy(scales).to(gpu).double()[:, None]

    def find(documents: Codes, steps: Vectors, floors: Vectors) -> Found:
        right = torch.from_numpy(documents).to(gpu)
        total = torch.zeros((len(codes), len(documents)), dtype=torch.float64, device=gpu)
        for query, part in zip(left, parts, strict=True):
            total += query @ right[:, part].float().T
        scores = (total * torch.from_numpy(steps).to(gpu).double() * of_queries).float()
        lines, columns = (scores >= torch.from_numpy(floors).to(gpu)[:, None]).nonzero(as_tuple=True)
        return lines.cpu().numpy(), columns.cpu().numpy(), scores[lines, columns].cpu().numpy()

    return find
