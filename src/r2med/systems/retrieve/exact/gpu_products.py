"""Matrix products of exact search on a GPU, in half precision. They select candidates, and float64 decides.

A half-precision score has an error from the rounding of the documents, of the query, of the sums and of the products.
If the scores of k documents, minus this error, reach a value, this value is a floor for the k best. Each document whose
score plus the error reaches the floor is a candidate. All candidates are scored in float64 from the stored vectors. If
the order of a float64 sum could change the float32 result, the CPU computes it. So all devices give the same scores.

Vectors stay on the GPU between searches while they use at most half of its free memory.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.ragged import Offsets
from r2med.systems.retrieve.exact.exact_scores import Queries
from r2med.systems.retrieve.exact.shortlist import Nearest
from r2med.systems.retrieve.exact.text_vectors import Part, Rows, TextVectors, rows_of

HALF_ERROR = 1.01 * 2.0**-11
"""Largest relative rounding error of half precision for normal numbers, relative to the rounded number too."""
SUBNORMAL_ERROR = 2.0**-25
"""Largest absolute rounding error for subnormal numbers."""
CHUNK_TEXTS = 1 << 20
"""Maximum number of documents multiplied at a time."""
GROUP_VECTORS = 1 << 13
"""Maximum number of query vectors multiplied at a time, if a query has several."""
GROUP_QUERIES = 1024
"""Maximum number of queries multiplied at a time."""
PRODUCTS_AT_ONCE = 1 << 30
"""Maximum number of products of documents and queries with several vectors that are in memory."""
BUNDLE_SCORES = 128
"""Maximum number of scores in a bundle.

Only the largest score of a bundle is compared first. Chunks contain whole bundles.
"""
HITS_AT_ONCE = 1 << 18
"""Number of bundles with a candidate that are processed together."""
DOUBLES_AT_ONCE = 1 << 27
"""Maximum number of float64 values while candidates are scored."""
CONVERTED_NUMBERS = 1 << 22
"""Number of values of vectors that are copied or converted together."""
MAX_CANDIDATES = 1 << 25
"""Maximum number of candidates that wait on the GPU."""

REDUCED_PRECISION = ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
"""Settings of torch that a program may have chosen for its models. The error bound holds without them."""
_settings_lock = threading.RLock()


@dataclass(frozen=True)
class Chunk:
    """Documents on the GPU, ordered by their numbers of vectors."""

    rows: Rows
    runs: tuple[tuple[int, int, int, int], ...]
    """For documents that take the same number of vectors: first document, end, number of vectors, first vector.

    A document with fewer vectors repeats its last one, and one without vectors has a vector of zeros.
    """
    stored: Any
    """The stored vectors. Rows of zeros fill the last bundle if documents have one vector each."""
    halves: Any
    """The vectors in half precision: times `scale`, or of length 1 for cosines.

    The same tensor as `stored` if possible.
    """
    scale: float
    """A power of two. It is 1 unless the vectors are too long or too short for half precision."""
    longest: float
    """Upper bound of the length of the rounded vectors."""
    off: float
    """Upper bound of the distance between a rounded vector and the true one."""
    longest_row: int
    longest_stored: float

    @property
    def bytes(self) -> int:
        """Memory of the chunk in bytes."""
        return int(self.stored.nbytes + (0 if self.halves is self.stored else self.halves.nbytes))


@dataclass
class QueryGroup:
    """Queries that are multiplied together, with the same number of vectors each. Vectors of zeros fill them up."""

    lines: npt.NDArray[np.intp]
    """The numbers of the queries."""
    stored: Any
    """Their vectors in float64: query × vector × dimension."""
    norms: Any
    """Lengths of the vectors: query × vector."""
    halves: Any
    """The vectors in half precision, one after the other. The longest of a query has length 1; for cosines all have."""
    mass: Any
    """For each query, the sum of the lengths of the scaled vectors."""
    lost: Any
    """For each query, the sum of the distances between the scaled vectors and the rounded ones."""
    floors: Any
    """For each scaled query, k scores that k documents reach."""


class GpuProducts:
    """Matrix products of the queries of one search, computed on a GPU."""

    def __init__(
        self,
        queries: Queries,
        nearest: Nearest,
        device: str,
        chunks: dict[tuple[str, bool, int, int], Chunk],
    ) -> None:
        import torch

        self._queries, self._nearest, self._k, self._chunks = queries, nearest, nearest.k, chunks
        self._device, self._cosine = torch.device(device), queries.cosine
        self._dimension = queries.texts.vectors.shape[1]
        cuda: Any = torch.cuda if self._device.type == "cuda" else None
        self._room = cuda.get_device_properties(self._device).total_memory // 64 if cuda else 1 << 24
        """Maximum number of values in a chunk. It is the same for all searches, so that cached chunks are found."""
        numbers = max(1, self._dimension)
        self.part_vectors = max(1, CONVERTED_NUMBERS // numbers)
        self.tile_texts, self.tile_vectors = CHUNK_TEXTS, max(BUNDLE_SCORES, self._room // numbers)
        self._groups = [self._group(lines) for lines in _groups(queries.texts.sizes)]
        self._waiting: list[tuple[Chunk, QueryGroup, Any, Any, Any]] = []
        """Candidates: chunk, group, queries of the group, columns of the chunk, and upper bounds of their scores."""

    def search(self, tile: list[Part]) -> None:
        """Find the candidates of a chunk. If its vectors do not stay on the GPU, score them immediately."""
        with _plain_arithmetic(self._device):
            chunk, kept = self._chunk(tile)
            self._queries.check_length(chunk.longest_row, chunk.longest_stored)
            for group in self._groups:
                self._find(chunk, group)
            if not kept:
                self.flush()

    def flush(self) -> None:
        """Score the waiting candidates and keep the k best."""
        found, self._waiting, waiting = [], [], self._waiting
        with _plain_arithmetic(self._device):
            for chunk, group, queries, columns, upper in waiting:
                still = upper >= group.floors.amin(1)[queries]
                found.append(self._exact(chunk, group, queries[still], columns[still]))
        if not found:
            return
        lines, rows, scores = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(lines, kind="stable")
        self._nearest.add(lines[order], rows[order], scores[order])

    def _group(self, lines: npt.NDArray[np.intp]) -> QueryGroup:
        """Return some queries on the GPU."""
        import torch

        queries = self._queries.texts
        count = max(1, int(queries.sizes[lines].max()))
        vectors = np.zeros((len(lines), count, self._dimension))
        norms = np.zeros((len(lines), count))
        for place, line in enumerate(lines.tolist()):
            here = queries.span(line, line + 1)
            vectors[place, : here.stop - here.start] = queries.vectors[here]
            norms[place, : here.stop - here.start] = self._queries.norms[here]
        stored, lengths = (torch.from_numpy(array).to(self._device) for array in (vectors, norms))
        sizes = lengths if self._cosine else lengths.amax(1, keepdim=True).expand_as(lengths)
        units = torch.where(sizes[:, :, None] > 0, stored / sizes[:, :, None], 0)
        halves = units.half()
        mass, lost = (torch.linalg.vector_norm(each, dim=2).sum(1) for each in (units, units - halves))
        floors = torch.full((len(lines), self._k), -torch.inf, dtype=torch.float64, device=self._device)
        return QueryGroup(lines, stored, lengths, halves.flatten(0, 1), mass, lost, floors)

    def _find(self, chunk: Chunk, group: QueryGroup) -> None:
        """Find the candidates of a chunk for some queries."""
        import torch

        scores, off = self._scores(chunk, group)
        count = len(chunk.rows)
        scores[:, count:] = -torch.inf
        size = min(BUNDLE_SCORES, 1 << max(0, (count // (4 * self._k)).bit_length() - 1))
        # Reads whole memory lines, because the scores of a bundle are not adjacent.
        maxima = scores.view(len(scores), size, -1).amax(1)
        largest = maxima.topk(min(self._k, maxima.shape[1]), dim=1, sorted=False).values.double()
        lower = (largest - HALF_ERROR * largest.abs() - off) / chunk.scale
        group.floors = torch.cat((group.floors, lower), 1).topk(self._k, dim=1, sorted=False).values
        # A score with an error of HALF_ERROR of itself plus `off` may be above the floor.
        floors = group.floors.amin(1, keepdim=True) * chunk.scale - off
        floors = floors / torch.where(floors > 0, 1 + HALF_ERROR, 1 - HALF_ERROR)
        limits = torch.finfo(scores.dtype)
        floors = (floors - limits.eps * floors.abs() - 2 * SUBNORMAL_ERROR).clamp(min=limits.min).to(scores.dtype)
        for queries, columns, values in _reaching(scores, maxima, floors, size):
            values = values.double()
            upper = (values + HALF_ERROR * values.abs() + off[queries, 0]) / chunk.scale
            self._waiting.append((chunk, group, queries, columns, upper))
            if sum(len(each[3]) for each in self._waiting) > MAX_CANDIDATES:
                self.flush()

    def _scores(self, chunk: Chunk, group: QueryGroup) -> tuple[Any, Any]:
        """Return the scores of all documents, a line for each query, and the largest absolute error of a line.

        The relative error of HALF_ERROR comes on top of it.
        """
        import torch

        count = group.stored.shape[1]
        sums = (self._dimension + 16) * 2.0**-22 + count * 2.0**-23
        off = group.mass * (chunk.off + sums * chunk.longest) + group.lost * chunk.longest + count * SUBNORMAL_ERROR
        if count == 1 and chunk.runs[-1][2] == 1:
            return torch.mm(group.halves, chunk.halves.T), off[:, None]
        width = -(-len(chunk.rows) // BUNDLE_SCORES) * BUNDLE_SCORES
        scores = torch.empty((len(group.lines), width), dtype=torch.float32, device=self._device)
        negative = torch.zeros_like(group.mass)
        for first, end, size, at in chunk.runs:
            step = max(1, min(PRODUCTS_AT_ONCE, self._room) // (size * len(group.halves)))
            for begin in range(first, end, step):
                stop = min(begin + step, end)
                vectors = chunk.halves[at + (begin - first) * size : at + (stop - first) * size]
                products = torch.mm(vectors, group.halves.T).view(stop - begin, size, -1)
                nearest = products.amax(1).view(stop - begin, len(group.lines), count)
                scores[:, begin:stop] = nearest.sum(2, dtype=torch.float32).T
                below = -nearest.clamp(max=0).sum(2, dtype=torch.float32).amin(0)
                negative = torch.maximum(negative, below.double())
        # Products have a relative error. The sum of their absolute values is at most the score and twice the negatives.
        return scores, (off + 2.02 * HALF_ERROR * negative)[:, None]

    def _exact(self, chunk: Chunk, group: QueryGroup, queries: Any, columns: Any) -> tuple[Any, Any, Any]:
        """Return the queries, rows and float64 scores of candidates.

        The CPU scores those whose sums could round differently in another order.
        """
        import torch

        scores = torch.empty(len(queries), dtype=torch.float64, device=self._device)
        count = group.stored.shape[1]
        for first, end, size, at in chunk.runs:
            places = ((columns >= first) & (columns < end)).nonzero()[:, 0]
            numbers = (size + count) * max(1, self._dimension) + size * count
            for some in places.split(max(1, min(DOUBLES_AT_ONCE, self._room // 4) // numbers)):
                vectors = (at + (columns[some] - first) * size)[:, None] + torch.arange(size, device=self._device)
                documents, asked = chunk.stored[vectors].double(), group.stored[queries[some]]
                products = (documents * asked).sum(2)[:, None] if count == 1 else torch.bmm(asked, documents.mT)
                if self._cosine:
                    norms = torch.linalg.vector_norm(documents, dim=2)[:, None] * group.norms[queries[some]][:, :, None]
                    products = torch.where(norms > 0, products / norms, 0)
                scores[some] = products.amax(2).sum(1)
        lines, places, exact = group.lines[queries.cpu().numpy()], columns.cpu().numpy(), scores.cpu().numpy()
        doubtful = np.flatnonzero(self._queries.doubtful(exact, lines, chunk.longest_stored))
        exact[doubtful] = self._queries.scores_in_order(lines[doubtful], self._fetched(chunk, places[doubtful]))
        return lines, chunk.rows[places], exact

    def _fetched(self, chunk: Chunk, places: npt.NDArray[np.int64]) -> TextVectors:
        """Return the stored vectors of some documents of a chunk."""
        import torch

        firsts, _, sizes, starts = np.array(chunk.runs).T
        runs = np.searchsorted(firsts, places, side="right") - 1
        offsets = np.append(0, np.cumsum(sizes[runs]))
        begins = starts[runs] + (places - firsts[runs]) * sizes[runs]
        index = np.repeat(begins - offsets[:-1], sizes[runs]) + np.arange(offsets[-1])
        vectors = chunk.stored[torch.from_numpy(index).to(self._device)].double().cpu().numpy()
        return TextVectors(vectors, None if (sizes == 1).all() else offsets)

    def _chunk(self, tile: list[Part]) -> tuple[Chunk, bool]:
        """Return the chunk of these documents, and True if it stays on the GPU.

        An earlier search may have loaded it.
        """
        key = (str(self._device), self._cosine, tile[0][0], sum(len(texts) for _, texts in tile))
        if key in self._chunks:
            return self._chunks[key], True
        chunk = self._loaded(tile)
        kept = sum(each.bytes for each in self._chunks.values())
        if kept + chunk.bytes > (kept + _free_bytes(self._device)) // 2:
            return chunk, False
        self._chunks[key] = chunk
        return chunk, True

    def _loaded(self, tile: list[Part]) -> Chunk:
        import torch

        rows = rows_of(tile)
        stored = self._uploaded(tile)
        runs: tuple[tuple[int, int, int, int], ...] = ((0, len(rows), 1, 0),)
        if any(texts.offsets is not None for _, texts in tile):
            order, index, runs = _by_size(np.concatenate([texts.sizes for _, texts in tile]))
            rows, stored = rows[order], stored[torch.from_numpy(index).to(self._device)]
        parts = [slice(at, at + self.part_vectors) for at in range(0, len(stored), self.part_vectors)]
        lengths = torch.cat([torch.linalg.vector_norm(stored[part].double(), dim=1) for part in parts])
        longest, place = (each.item() for each in lengths.max(0))  # NaN and infinity count as the largest
        first, end, size, at = [run for run in runs if run[3] <= place][-1]
        row = int(rows[min(first + (int(place) - at) // size, end - 1)])
        if not np.isfinite(longest):
            raise ValueError(f"row {row} has NaN or infinite values")
        if stored.dtype == torch.half and not self._cosine and longest < 2.0**15:
            return Chunk(rows, runs, stored, stored, 1.0, longest, 0.0, row, longest)
        scale = 1.0 if self._cosine else 2.0 ** -float(np.frexp(longest)[1])
        factors = torch.where(lengths > 0, 1 / lengths, 0) if self._cosine else torch.full_like(lengths, scale)
        halves = torch.empty(stored.shape, dtype=torch.half, device=self._device)
        for part in parts:
            halves[part] = stored[part].double() * factors[part, None]
        largest = 1.01 if self._cosine else 1.01 * longest * scale
        off = HALF_ERROR * largest + SUBNORMAL_ERROR * self._dimension**0.5
        return Chunk(rows, runs, stored, halves, scale, largest, off, row, longest)

    def _uploaded(self, tile: list[Part]) -> Any:
        """Return the vectors on the GPU, followed by at least one row of zeros up to a whole number of bundles.

        They are copied through pinned memory. One buffer is filled while the other is sent.
        """
        import torch

        arrays = [texts.vectors for _, texts in tile]
        count, longest = sum(map(len, arrays)), max(map(len, arrays))
        kind: Any = torch.half if all(array.dtype == np.float16 for array in arrays) else torch.float32
        shape = ((count // BUNDLE_SCORES + 1) * BUNDLE_SCORES, self._dimension)
        stored: Any = torch.zeros(shape, dtype=kind, device=self._device)
        cuda: Any = torch.cuda if self._device.type == "cuda" else None
        buffers = [(torch.empty((longest, shape[1]), dtype=kind, pin_memory=True), cuda.Event()) for _ in "ab" if cuda]
        for number, (here, array) in enumerate(zip(stored[:count].split([*map(len, arrays)]), arrays, strict=True)):
            if not cuda:
                here.copy_(_tensor(array))
                continue
            buffer, sent = buffers[number % 2]
            sent.synchronize()
            here.copy_(buffer[: len(array)].copy_(_tensor(array)), non_blocking=True)
            sent.record()
        return stored


def _groups(sizes: Offsets) -> Iterator[npt.NDArray[np.intp]]:
    """Yield the queries that are multiplied together, by their numbers of vectors."""
    order = np.argsort(sizes, kind="stable")
    while len(order):
        padded = np.arange(1, len(order) + 1) * np.maximum(sizes[order], 1)
        count = min(GROUP_QUERIES, max(1, int((padded <= GROUP_VECTORS).sum())))
        yield order[:count]
        order = order[count:]


def _by_size(sizes: Offsets) -> tuple[Any, Offsets, tuple[tuple[int, int, int, int], ...]]:
    """Return the documents ordered by their numbers of vectors, the vectors of all of them, and the runs of a chunk.

    Documents of a run have at most an eighth more vectors than others of it.
    """
    filled = np.maximum(sizes, 1)
    steps = 1 << np.maximum(np.frexp(filled)[1] - 4, 0).astype(np.int64)
    classes = -(-filled // steps) * steps
    order = np.argsort(classes, kind="stable")
    bounds = [0, *(np.flatnonzero(np.diff(classes[order])) + 1).tolist(), len(order)]
    starts = np.where(sizes > 0, np.cumsum(sizes) - sizes, sizes.sum())  # A row of zeros follows all vectors.
    runs, index, at = [], [], 0
    for begin, end in pairwise(bounds):
        texts = order[begin:end]
        size = int(filled[texts].max())
        index.append((starts[texts, None] + np.minimum(np.arange(size), filled[texts, None] - 1)).ravel())
        runs.append((begin, end, size, at))
        at += size * len(texts)
    return order, np.concatenate(index), tuple(runs)


def _reaching(scores: Any, maxima: Any, floors: Any, size: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (lines, columns, scores) of all scores that reach the floor of their line. `floors` is a column.

    The largest score of each bundle is compared first. Once a floor is known, few of them reach it.
    """
    import torch

    count, flat = maxima.shape[1], scores.view(-1)
    within = torch.arange(size, device=scores.device) * count
    for hits in (maxima >= floors).view(-1).nonzero().split(HITS_AT_ONCE):
        lines = hits // count
        positions = lines * (scores.shape[1] - count) + hits + within
        some = flat[positions]
        chosen = (some >= floors[lines[:, 0]]).view(-1).nonzero()[:, 0]
        lines = lines.view(-1)[chosen // size]
        yield lines, positions.view(-1)[chosen] - lines * scores.shape[1], some.view(-1)[chosen]


@contextmanager
def _plain_arithmetic(device: Any) -> Iterator[None]:
    """Compute without gradients, with sums in float32, whatever precision a program has chosen for its models."""
    import torch

    settings: Any = torch.backends.cuda.matmul
    names = [name for name in REDUCED_PRECISION if hasattr(settings, name)]
    with _settings_lock, torch.inference_mode(), torch.autocast(device.type, enabled=False):
        before = [getattr(settings, name) for name in names]
        try:
            for name in names:
                setattr(settings, name, False)
            yield
        finally:
            for name, value in zip(names, before, strict=True):
                setattr(settings, name, value)


def _free_bytes(device: Any) -> int:
    """Return the free memory of a GPU in bytes, including memory that torch has reserved but does not use."""
    from torch import cuda

    if device.type != "cuda":
        return 1 << 30
    return int(cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device))


def _tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor over the same memory. torch warns about read-only arrays, but this tensor is only read."""
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
