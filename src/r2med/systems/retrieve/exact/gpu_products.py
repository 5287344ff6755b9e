"""Exact search on a GPU: products in half precision select candidates, and float64 decides.

If the scores of k documents, minus their error, reach a value, this value is a floor for the k best. Each document
whose score plus the error reaches the floor is a candidate, and is scored in float64 from the stored vectors. The CPU
adds up again where the order of a sum could change the float32 result. So all devices give the same scores.
Vectors stay on the GPU between searches if all of them take at most half of its free memory.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from r2med.models.encoders.ragged import Offsets
from r2med.systems.retrieve.exact.exact_scores import Nearest, Queries
from r2med.systems.retrieve.exact.text_vectors import Exact, Places, Rows, TextVectors, Tile, joined_rows

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
"""Maximum number of scores in a bundle. At first only the largest score of a bundle is compared with the limit."""
HITS_AT_ONCE = 1 << 18
"""Number of bundles with a candidate that are processed together."""
DOUBLES_AT_ONCE = 1 << 27
"""Maximum number of float64 values while candidates are scored."""
REDUCED_PRECISION = ("allow_fp16_reduced_precision_reduction", "allow_fp16_accumulation")
"""Settings of torch that a program may have chosen for its models. The error bound holds without them."""
_settings_lock = threading.RLock()


@dataclass(frozen=True)
class Chunk:
    """Documents on the GPU. Tensors are of type Any, because torch is imported late."""

    rows: Rows
    offsets: Offsets | None
    """Where the vectors of each document begin and end. None if each document has one vector."""
    starts: Any
    """The same as a tensor."""
    stored: Any
    """The stored vectors. Rows of zeros follow, up to a whole number of bundles."""
    halves: Any
    """The vectors in half precision: times `scale`, or of length 1 for cosines. The stored ones if possible."""
    scale: float
    """A power of two. It is 1 unless the vectors are too long or too short for half precision."""
    longest: float
    """Upper bound of the length of the rounded vectors."""
    off: float
    """Upper bound of the distance between a rounded vector and the true one."""
    longest_row: int
    longest_stored: float


@dataclass
class QueryGroup:
    """Queries that are multiplied together, with the same number of vectors each. Vectors of zeros fill them up."""

    lines: Places
    """The numbers of the queries."""
    doubles: Any
    """Their vectors in float64: query × vector × dimension. For cosines they have length 1."""
    halves: Any
    """The vectors in half precision, one after the other. The longest of a query has length 1; for cosines all have."""
    mass: Any
    """For each query, the sum of the lengths of the scaled vectors."""
    lost: Any
    """For each query, the sum of the distances between the scaled vectors and the rounded ones."""
    floors: Any
    """For each scaled query, k scores that k documents reach."""


class GpuProducts:
    """A search of the queries on a GPU."""

    def __init__(
        self, queries: Queries, nearest: Nearest, device: str, chunks: dict[tuple[str, bool], list[Chunk]]
    ) -> None:
        import torch

        self._queries, self._nearest, self._device = queries, nearest, torch.device(device)
        self._chunks, self._key = chunks, (device, queries.cosine)
        self._dimension = max(1, queries.texts.vectors.shape[1])
        cuda: Any = torch.cuda if self._device.type == "cuda" else None
        self._room = cuda.get_device_properties(self._device).total_memory // 64 if cuda else 1 << 24
        """Maximum number of values in a chunk."""
        self.tile_texts, self.tile_vectors = CHUNK_TEXTS, max(BUNDLE_SCORES, self._room // self._dimension)
        order = np.argsort(queries.texts.sizes, kind="stable")  # Queries of a group have similar numbers of vectors.
        texts = queries.texts.taken(order)
        parts = texts.parts(GROUP_VECTORS, GROUP_QUERIES)
        self._groups = [self._group(order[begin:end], texts.part(begin, end)) for begin, end in parts]
        self._waiting: list[tuple[Chunk, QueryGroup, Any, Any, Any]] = []
        """Candidates: chunk, group, queries of the group, columns of the chunk, and upper bounds of their scores."""

    def search(self, tiles: Iterator[Tile]) -> None:
        """Add the documents that are among the k best. Chunks that are on the GPU are searched instead of the tiles."""
        chunks = self._chunks.get(self._key)
        with _plain_arithmetic(self._device):
            for chunk, stays in self._loaded(tiles) if chunks is None else ((chunk, True) for chunk in chunks):
                self._queries.check_length(chunk.longest_row, chunk.longest_stored)
                for group in self._groups:
                    self._find(chunk, group)
                if not stays:
                    self._decide()
            self._decide()

    def _group(self, lines: Places, texts: TextVectors) -> QueryGroup:
        """Return some queries on the GPU."""
        import torch

        vectors = [torch.from_numpy(texts.vectors[texts.span(place, place + 1)]) for place in range(len(texts))]
        vectors.append(torch.zeros(1, texts.vectors.shape[1], dtype=torch.float64))  # At least one vector of zeros.
        doubles = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)[:-1].to(self._device)
        sizes = torch.linalg.vector_norm(doubles, dim=2, keepdim=True)
        units = torch.where(sizes > 0, doubles / (sizes if self._queries.cosine else sizes.amax(1, keepdim=True)), 0)
        halves = units.half()
        mass, lost = (torch.linalg.vector_norm(rows, dim=2).sum(1) for rows in (units, units - halves))
        floors = torch.full((len(lines), self._nearest.k), -torch.inf, dtype=torch.float64, device=self._device)
        exact = units if self._queries.cosine else doubles
        return QueryGroup(lines, exact, halves.flatten(0, 1), mass, lost, floors)

    def _find(self, chunk: Chunk, group: QueryGroup) -> None:
        """Find the candidates of a chunk for some queries."""
        import torch

        scores, error = self._scores(chunk, group)
        count, k = len(chunk.rows), self._nearest.k
        scores[:, count:] = -torch.inf
        # The largest score of each bundle is compared first. Scores of a bundle are not adjacent, to read whole lines.
        size = min(BUNDLE_SCORES, 1 << max(0, (count // (4 * k)).bit_length() - 1))
        bundles = scores.view(len(scores), size, -1)
        maxima = bundles.amax(1)
        error = 1.01 * (error + HALF_ERROR * maxima.abs().amax(1).double())[:, None]
        lower = maxima.topk(min(k, maxima.shape[1]), dim=1, sorted=False).values.double() - error
        group.floors = torch.cat((group.floors, lower / chunk.scale), 1).topk(k, dim=1, sorted=False).values
        floors = group.floors.amin(1, keepdim=True) * chunk.scale - error
        limits = torch.finfo(scores.dtype)
        floors = (floors - limits.eps * floors.abs() - 2 * SUBNORMAL_ERROR).clamp(min=limits.min).to(scores.dtype)
        for hits in (maxima >= floors).nonzero().split(HITS_AT_ONCE):
            values = bundles[hits[:, 0], :, hits[:, 1]]
            chosen, steps = (values >= floors[hits[:, 0]]).nonzero().T
            lines, columns = hits[chosen, 0], hits[chosen, 1] + steps * maxima.shape[1]
            upper = (values[chosen, steps].double() + error[lines, 0]) / chunk.scale
            self._waiting.append((chunk, group, lines, columns, upper))

    def _scores(self, chunk: Chunk, group: QueryGroup) -> tuple[Any, Any]:
        """Return the scores of all documents, a line for each query, and the largest error of each line.

        Columns up to a whole number of bundles follow. HALF_ERROR of the largest score is not in the error yet.
        """
        import torch

        queries, count, _ = group.doubles.shape
        lowest = torch.zeros_like(group.halves[:, 0])
        if count == 1 and chunk.offsets is None:
            scores = torch.mm(group.halves, chunk.halves.T)
        else:
            width = -(-len(chunk.rows) // BUNDLE_SCORES) * BUNDLE_SCORES
            scores = torch.empty((queries, width), dtype=torch.float32, device=self._device)
            single = chunk.offsets is None
            texts = TextVectors(chunk.halves[: len(chunk.rows)] if single else chunk.halves, chunk.offsets)
            sizes: Any = None if single else chunk.starts.diff()[:, None]
            has_empty = (texts.sizes == 0).any()
            for begin, end in texts.parts(min(PRODUCTS_AT_ONCE, self._room) // len(group.halves)):
                largest = torch.mm(texts.vectors[texts.span(begin, end)], group.halves.T)
                if sizes is not None:
                    largest = torch.segment_reduce(largest, "max", lengths=sizes[begin:end, 0], unsafe=True)
                if has_empty:
                    largest = largest.where(sizes[begin:end] > 0, 0)
                lowest = torch.minimum(lowest, largest.amin(0))
                scores[:, begin:end] = largest.view(-1, queries, count).sum(2, dtype=torch.float32).T
        sums = (self._dimension + 16) * 2.0**-22 + count * 2.0**-23
        error = group.mass * (chunk.off + sums * chunk.longest) + group.lost * chunk.longest + count * SUBNORMAL_ERROR
        # The rounding of products is relative to the sum of their sizes: the score, and twice the negative ones.
        return scores, error - 2 * HALF_ERROR * lowest.view(queries, count).double().sum(1)

    def _decide(self) -> None:
        """Score the waiting candidates, and keep the k best."""
        waiting, self._waiting = self._waiting, []
        scored = []
        for chunk, group, lines, columns, upper in waiting:
            still = upper >= group.floors.amin(1)[lines]
            scored.append(self._exact(chunk, group, lines[still], columns[still]))
        if scored:
            lines, rows, scores = map(np.concatenate, zip(*scored, strict=True))
            order = np.argsort(lines, kind="stable")
            self._nearest.add(lines[order], rows[order], scores[order])

    def _exact(self, chunk: Chunk, group: QueryGroup, queries: Any, columns: Any) -> tuple[Places, Rows, Exact]:
        """Return the queries, rows and float64 scores of candidates."""
        import torch

        lines, places = group.lines[queries.cpu().numpy()], columns.cpu().numpy()
        scores = torch.zeros(len(places), dtype=torch.float64, device=self._device)
        for some, size in self._batches(chunk, places, group.doubles.shape[1]):
            here = torch.from_numpy(some).to(self._device)
            documents = _documents(chunk, columns[here], size)
            products = torch.bmm(group.doubles[queries[here]], documents.mT)
            if self._queries.cosine:
                norms = torch.linalg.vector_norm(documents, dim=2)[:, None]
                products = torch.where(norms > 0, products / norms, 0)
            scores[here] = products.amax(2).sum(1)
        exact = scores.cpu().numpy()
        doubtful = self._queries.doubtful(exact, lines, chunk.longest_stored)
        for some, size in self._batches(chunk, places[doubtful], 0):
            again = doubtful[some]
            vectors = _documents(chunk, columns[torch.from_numpy(again).to(self._device)], size).flatten(0, 1)
            offsets = None if chunk.offsets is None else size * np.arange(len(again) + 1)
            exact[again] = self._queries.scores_in_order(lines[again], TextVectors(vectors.cpu().numpy(), offsets))
        return lines, chunk.rows[places], exact

    def _batches(self, chunk: Chunk, places: Places, query_vectors: int) -> Iterator[tuple[Places, int]]:
        """Yield documents that are scored together, and their largest number of vectors. Those without score 0."""
        sizes = np.ones(len(places), np.int64) if chunk.offsets is None else np.diff(chunk.offsets)[places]
        order, begin = np.argsort(-sizes, kind="stable")[: np.count_nonzero(sizes)], 0
        while begin < len(order):
            size = int(sizes[order[begin]])
            numbers = (size + query_vectors) * self._dimension + size * query_vectors
            end = begin + max(1, min(DOUBLES_AT_ONCE, self._room // 4) // numbers)
            yield order[begin:end], size
            begin = end

    def _loaded(self, tiles: Iterator[Tile]) -> Iterator[tuple[Chunk, bool]]:
        """Yield each chunk, and True if it stays on the GPU. All chunks stay there between searches, or none."""
        chunks: list[Chunk] = []
        stays = True
        for tile in tiles:
            chunk = self._chunk(tile)
            tile.clear()  # Otherwise its vectors would stay in memory while the next tile is read.
            chunks.append(chunk)
            taken = sum(chunk.stored.nbytes + chunk.halves.nbytes for chunk in chunks)
            stays = stays and taken <= _free_bytes(self._device)
            if not stays:
                chunks.clear()
            yield chunk, stays
        if stays:
            self._chunks[self._key] = chunks

    def _chunk(self, tile: Tile) -> Chunk:
        """Return the documents of a tile on the GPU."""
        import torch

        rows, offsets = joined_rows(tile)
        starts = None if offsets is None else torch.from_numpy(offsets).to(self._device)
        arrays = [texts.vectors for _, texts in tile]
        kind: Any = torch.half if all(array.dtype == np.float16 for array in arrays) else torch.float32
        shape = (sum(map(len, arrays)) // BUNDLE_SCORES + 1) * BUNDLE_SCORES, arrays[0].shape[1]
        stored: Any = torch.zeros(shape, dtype=kind, device=self._device)
        shape = max(map(len, arrays)), shape[1]
        pinned: Any = torch.empty(shape, dtype=kind, pin_memory=self._device.type == "cuda")
        at = 0
        for array in arrays:
            with warnings.catch_warnings(action="ignore"):  # torch warns of files that are mapped read-only.
                vectors = torch.from_numpy(array)
            # torch copies with all cores, NumPy with one.
            stored[at : at + len(array)] = pinned[: len(array)].copy_(vectors)
            at += len(array)
        lengths = torch.linalg.vector_norm(stored.double(), dim=1)
        longest, place = (number.item() for number in lengths.max(0))  # NaN and infinity count as the largest.
        row = int(rows[min(TextVectors(stored, offsets).text_of(int(place)), len(rows) - 1)])
        if kind == torch.half and not self._queries.cosine and longest < 2.0**15:
            return Chunk(rows, offsets, starts, stored, stored, 1.0, longest, 0.0, row, longest)
        scale = 1.0 if self._queries.cosine else 2.0 ** -float(np.frexp(longest)[1])
        factors = torch.where(lengths > 0, 1 / lengths, 0) if self._queries.cosine else torch.full_like(lengths, scale)
        halves = torch.empty(stored.shape, dtype=torch.half, device=self._device)
        torch.mul(stored, factors[:, None], out=halves)
        largest = 1.01 if self._queries.cosine else 1.01 * longest * scale
        off = HALF_ERROR * largest + SUBNORMAL_ERROR * self._dimension**0.5
        return Chunk(rows, offsets, starts, stored, halves, scale, largest, off, row, longest)


def _documents(chunk: Chunk, columns: Any, size: int) -> Any:
    """Return the vectors of some documents in float64. Documents with fewer vectors than `size` repeat the last."""
    import torch

    if chunk.offsets is None:
        return chunk.stored[columns][:, None].double()
    begins, lasts = chunk.starts[columns][:, None], chunk.starts[columns + 1][:, None] - 1
    return chunk.stored[torch.minimum(begins + torch.arange(size, device=columns.device), lasts)].double()


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
