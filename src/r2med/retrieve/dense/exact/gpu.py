"""Exact dense search on a GPU: products in half precision propose, float64 decides.

A half-precision score is off by at most what is proven here: the rounding of the documents, of the query, of the sums
and of the score. k documents whose scores less that bound are above a floor make the floor one for the k best; every
document whose score plus that bound reaches it is a candidate, and all candidates are scored again in float64 from the
vectors as they are stored. The host's sums decide: where theirs could round to another float32, it adds up too.

Vectors stay on the GPU between searches if they fit. Otherwise they stream through pinned memory, while the chunk
before is searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arithmetic import full_precision, tensor
from r2med.retrieve.dense.exact.arrays import Asked, Block, Rows, check_scores
from r2med.retrieve.dense.exact.gpu_loader import BUNDLE, HALF, SMALLEST, Chunk, Loader, loaded_ahead
from r2med.retrieve.dense.exact.rescoring import Rescorer

HITS = 1 << 18
"""Bundles with a candidate that are looked at together."""
PAIRS = 1 << 16
"""Candidates that are scored again together."""
MOST = 1 << 25
"""Candidates on the GPU."""


class ChunkCandidates(NamedTuple):
    """Documents of a chunk that may be among the k best, by query, row within it, and the highest score it can have."""

    chunk: Chunk
    queries: Any
    rows: Any
    upper: Any


class GpuSearch:
    """Searches with one set of queries."""

    def __init__(self, asked: Asked, device: str) -> None:
        import torch

        queries, k, ranks, cosine, memory = asked
        self._k, self._cosine, self._memory = k, cosine, memory
        self._rescorer = Rescorer(queries, cosine)
        self._device = torch.device(device)
        self._ranks = tensor(ranks).to(self._device)
        self._exact = torch.from_numpy(queries).to(self._device).double()
        self._norms = torch.from_numpy(self._rescorer.norms).to(self._device)
        unit = torch.where(self._norms > 0, self._exact.T / self._norms, 0).T
        self._queries = unit.half().contiguous()
        self._lost = torch.linalg.vector_norm(unit - self._queries, dim=1)
        self._floors = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=self._device)
        """Scores that k documents reach with a query of length 1."""
        self._candidates: list[ChunkCandidates] = []
        empty = torch.empty(0, dtype=torch.int64, device=self._device)
        self._best = (empty, empty, empty)
        """Queries, rows and keys of the k best up to now, ascending by query."""
        self._loader = Loader(self._device, cosine, queries.shape)

    def run(self, blocks: Iterable[Block], kept: list[Chunk] | None) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query; `kept` has the corpus on the GPU, or takes it if it is empty and it fits."""
        with full_precision():
            if kept:
                for first, block in blocks:
                    self._rescorer.hold(first, block)
                for chunk in list(kept):
                    self._find_candidates(chunk)
                self._decide()
                return self._results()
            self._more, stream = True, iter(blocks)
            chunks: list[Chunk] | None = [] if kept is not None and self._loader.fits(blocks) else None
            while self._more:
                for chunk in loaded_ahead(self._loader.chunks(self._held(stream))):
                    self._find_candidates(chunk)
                    self._decide()
                    if chunks is not None:
                        chunks.append(chunk)
                self._rescorer.release()
            if kept is not None and chunks is not None:
                kept[:] = chunks  # at once: another thread may search with them
            return self._results()

    def _held(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks, in reach of the rescorer, until there are no more or as many are held as memory allows."""
        for first, block in blocks:
            self._rescorer.hold(first, block)
            yield first, block
            if self._rescorer.held > self._memory // 2:
                return
        self._more = False

    def _find_candidates(self, chunk: Chunk) -> None:
        """Find the candidates of a chunk."""
        import torch

        scores = torch.mm(self._queries, chunk.vectors.T)
        scores[:, chunk.count :] = -torch.inf
        size = min(BUNDLE, 1 << max(0, (chunk.count // (4 * self._k)).bit_length() - 1))
        maxima = scores.view(len(scores), size, -1).amax(1)  # reads whole lines of memory: a bundle's scores lie apart
        sums = (chunk.vectors.shape[1] + 16) * 2.0**-22 * chunk.longest
        off = (chunk.off + self._lost * chunk.longest + sums)[:, None]
        largest = maxima.topk(min(self._k, maxima.shape[1]), dim=1, sorted=False).values.double()
        lower = (largest - 2 * HALF * largest.abs() - off) / chunk.scale
        self._floors = torch.cat((self._floors, lower), 1).topk(self._k, dim=1, sorted=False).values
        # Whatever is off by 2 · HALF of itself and by `off` may belong above the floor from here on.
        floors = self._floors.amin(1, keepdim=True) * chunk.scale - off
        floors = floors / torch.where(floors > 0, 1 + 2 * HALF, 1 - 2 * HALF)
        floors = (floors - 2 * HALF * floors.abs() - 2 * SMALLEST).clamp(min=torch.finfo(torch.half).min).half()
        for queries, rows, values in _reaching(scores, floors, size):
            upper = (values.double() + 2 * HALF * values.double().abs() + off[queries, 0]) / chunk.scale
            self._candidates.append(ChunkCandidates(chunk, queries, rows, upper))
            if sum(len(waiting.rows) for waiting in self._candidates) > MOST:
                self._decide()

    def _decide(self) -> None:
        """Keep the k best of each query, of all candidates up to now."""
        import torch

        found = [self._best]
        for chunk, queries, rows, upper in self._candidates:
            still = upper >= self._floors.amin(1)[queries]
            queries, rows = queries[still], rows[still]
            scores = self._rescored(chunk, queries, rows).float()
            rows = rows + chunk.first
            found.append((queries, rows, _keys(scores, self._ranks[rows])))
        self._candidates = []
        queries, rows, keys = (torch.cat(part) for part in zip(*found, strict=True))
        order = keys.argsort(descending=True)
        order = order[queries[order].argsort(stable=True)]
        counts = queries.bincount(minlength=len(self._queries))
        place = torch.arange(len(order), device=self._device) - (counts.cumsum(0) - counts)[queries[order]]
        order, place = order[place < self._k], place[place < self._k]
        self._best = queries[order], rows[order], keys[order]
        self._floors.fill_(-torch.inf)
        below = _scores(keys[order]).nextafter(torch.tensor(-torch.inf, device=self._device)).double()
        if not self._cosine:
            norms = self._norms[queries[order]]
            below = torch.where(norms > 0, below / norms, 0)
        self._floors[queries[order], place] = below - below.abs() * 2.0**-50

    def _rescored(self, chunk: Chunk, queries: Any, rows: Any) -> Any:
        """Return the scores of pairs in float64; by the host where its sums could round to another float32."""
        import torch

        dots = torch.empty(len(rows), dtype=torch.float64, device=self._device)
        for at in range(0, len(rows), PAIRS):
            part = slice(at, at + PAIRS)
            documents = chunk.stored[rows[part]].double()
            norms = torch.linalg.vector_norm(documents, dim=1) * self._norms[queries[part]] if self._cosine else None
            dots[part] = documents.mul_(self._exact[queries[part]]).sum(1)
            if norms is not None:
                dots[part] = torch.where(norms > 0, dots[part] / norms, 0)
        size = 1.0 if self._cosine else self._norms[queries] * (chunk.longest / chunk.scale)
        off = 8 * (self._exact.shape[1] + 8) * 2.0**-53 * size
        doubtful = ((dots - off).float() != (dots + off).float()).nonzero()[:, 0]
        pairs = (each[doubtful].cpu().numpy() for each in (queries, (rows + chunk.first).int()))
        dots[doubtful] = torch.from_numpy(self._rescorer.score(*pairs)).to(self._device)
        return dots

    def _results(self) -> list[tuple[Rows, Vectors]]:
        """Return the rows and scores of each query."""
        queries, rows, keys = self._best
        found, scores = rows.int().cpu().numpy(), _scores(keys).cpu().numpy()
        check_scores(found, scores)
        ends = queries.bincount(minlength=len(self._queries)).cumsum(0).cpu().numpy()[:-1]
        return list(zip(np.split(found, ends), np.split(scores, ends), strict=True))


def _reaching(scores: Any, floors: Any, size: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (lines, columns, scores) of the scores of a tensor that reach the floors, a column of them, of their lines.

    The largest of each bundle is compared first: there are few that reach the floor, once one is known.
    """
    import torch

    stride = scores.stride(0)
    flat = scores.as_strided((stride * (len(scores) - 1) + scores.shape[1],), (1,))
    bundles = scores.unflatten(1, (size, -1))
    count = bundles.shape[2]
    within = torch.arange(size, device=scores.device) * count
    for hits in (bundles.amax(1) >= floors).view(-1).nonzero().split(HITS):
        lines = hits // count
        positions = lines * (stride - count) + hits + within
        some = flat[positions]
        chosen = (some >= floors[lines[:, 0]]).view(-1).nonzero()[:, 0]
        lines = lines.view(-1)[chosen // size]
        yield lines, positions.view(-1)[chosen] - lines * stride, some.view(-1)[chosen]


def _keys(scores: Any, ranks: Any) -> Any:
    """Return numbers that order pairs by score, and by rank where scores are equal."""
    import torch

    bits = (scores + 0.0).view(torch.int32)  # -0.0 would not tie with 0.0
    return (_flipped(bits).long() << 32) + ranks


def _scores(keys: Any) -> Any:
    """Return the scores of keys."""
    import torch

    return _flipped((keys >> 32).int()).view(torch.float32)


def _flipped(bits: Any) -> Any:
    """Return the bits of scores such that they order as integers, or those of such integers back as scores'."""
    return bits ^ ((bits >> 31) & 0x7FFFFFFF)
