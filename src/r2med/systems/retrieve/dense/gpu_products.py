"""Matrix products of exact dense search on a GPU, in half precision. They select candidates, and float64 decides.

A half-precision score has an error from the rounding of the documents, of the query, of the sums and of the score. If
the scores of k documents, minus this error, reach a value, this value is a floor for the k best. Each document whose
score plus the error reaches the floor is a candidate. All candidates are scored in float64 from the stored vectors. If
the order of a float64 sum could change the float32 result, the CPU computes it. So all devices give the same ranking.

Vectors stay on the GPU between searches while they use at most half of its free memory.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.systems.retrieve.dense.exact_scores import Block, ExactScorer, Rows
from r2med.systems.retrieve.dense.shortlist import Shortlists

HALF_ERROR = 2.0**-11
"""Largest relative rounding error of half precision for normal numbers."""
SUBNORMAL_ERROR = 2.0**-25
"""Largest absolute rounding error for subnormal numbers."""
CHUNK_ROWS = 1 << 20
"""Maximum number of documents multiplied at a time."""
QUERIES_AT_ONCE = 1024
"""Maximum number of queries multiplied at a time."""
BUNDLE_SCORES = 128
"""Maximum number of scores in a bundle.

Only the largest score of a bundle is compared first. Chunks contain whole bundles.
"""
HITS_AT_ONCE = 1 << 18
"""Number of bundles with a candidate that are processed together."""
PAIRS_AT_ONCE = 1 << 16
"""Number of candidates that are scored in float64 together."""
CONVERTED_ROWS = 1 << 14
"""Number of vectors that are converted together."""
MAX_CANDIDATES = 1 << 25
"""Maximum number of candidates that wait on the GPU."""

_flag_lock = threading.Lock()


@dataclass(frozen=True)
class Chunk:
    """Documents on the GPU."""

    rows: Rows
    stored: Any
    """The stored vectors. Rows of zeros fill the last bundle."""
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


class GpuProducts:
    """Matrix products of the queries of one search, computed on a GPU."""

    def __init__(
        self,
        scorer: ExactScorer,
        shortlists: Shortlists,
        k: int,
        device: str,
        chunks: dict[tuple[str, bool, int, int], Chunk],
    ) -> None:
        import torch

        self._scorer, self._shortlists, self._k, self._chunks = scorer, shortlists, k, chunks
        self._device, self._cosine = torch.device(device), scorer.cosine
        self._norms = torch.from_numpy(scorer.norms).to(self._device)
        self._exact_queries = _tensor(scorer.queries).to(self._device).double()
        unit = torch.where(self._norms > 0, self._exact_queries.T / self._norms, 0).T
        self._queries = unit.half().contiguous()
        self._lost = torch.linalg.vector_norm(unit - self._queries, dim=1)
        self._floors = torch.full((len(unit), k), -torch.inf, dtype=torch.float64, device=self._device)
        """For each query, scaled to length 1, k scores that k documents reach."""
        self._waiting: list[tuple[Chunk, Any, Any, Any]] = []
        """Candidates: chunk, queries, columns in the chunk, and upper bounds of their scores."""

    @property
    def tile_rows(self) -> int:
        """Number of documents in a chunk.

        It is the same for every search on a device, so that cached chunks are found again.
        """
        from torch import cuda

        if self._device.type != "cuda":
            return CHUNK_ROWS
        total = cuda.get_device_properties(self._device).total_memory
        return int(max(BUNDLE_SCORES, min(CHUNK_ROWS, total // 64 // max(1, self._queries.shape[1]))))

    def search(self, pieces: list[Block]) -> None:
        """Find the candidates of a chunk. If its vectors do not stay on the GPU, score them immediately."""
        import torch

        with torch.inference_mode(), torch.autocast(self._device.type, enabled=False):
            chunk, kept = self._chunk(pieces)
            self._scorer.check_length(chunk.longest_row, chunk.longest_stored)
            for at in range(0, len(self._queries), QUERIES_AT_ONCE):
                self._find(chunk, slice(at, at + QUERIES_AT_ONCE))
            if not kept:
                self.flush()

    def flush(self) -> None:
        """Score the waiting candidates and add them to the shortlists."""
        if not self._waiting:
            return
        found, floors = [], self._floors.amin(1)
        for chunk, lines, columns, upper in self._waiting:
            still = upper >= floors[lines]
            found.append(self._scored(chunk, lines[still], columns[still]))
        self._waiting = []
        lines, rows, scores = map(np.concatenate, zip(*found, strict=True))
        order = np.argsort(lines, kind="stable")
        self._shortlists.add_exact(lines[order], rows[order], scores[order])

    def _find(self, chunk: Chunk, part: slice) -> None:
        """Find the candidates of a chunk for some queries."""
        import torch

        scores, count = self._product(self._queries[part], chunk.halves), len(chunk.rows)
        scores[:, count:] = -torch.inf
        size = min(BUNDLE_SCORES, 1 << max(0, (count // (4 * self._k)).bit_length() - 1))
        # Reads whole memory lines, because the scores of a bundle are not adjacent.
        maxima = scores.view(len(scores), size, -1).amax(1)
        sums = (self._queries.shape[1] + 16) * 2.0**-22 * chunk.longest
        off = (chunk.off + self._lost[part] * chunk.longest + sums)[:, None]
        largest = maxima.topk(min(self._k, maxima.shape[1]), dim=1, sorted=False).values.double()
        lower = (largest - 2 * HALF_ERROR * largest.abs() - off) / chunk.scale
        self._floors[part] = torch.cat((self._floors[part], lower), 1).topk(self._k, dim=1, sorted=False).values
        # A score with an error of 2 · HALF_ERROR of itself plus `off` may be above the floor.
        floors = self._floors[part].amin(1, keepdim=True) * chunk.scale - off
        floors = floors / torch.where(floors > 0, 1 + 2 * HALF_ERROR, 1 - 2 * HALF_ERROR)
        floors = (
            (floors - 2 * HALF_ERROR * floors.abs() - 2 * SUBNORMAL_ERROR).clamp(min=torch.finfo(torch.half).min).half()
        )
        for lines, columns, values in _reaching(scores, maxima, floors, size):
            values = values.double()
            upper = (values + 2 * HALF_ERROR * values.abs() + off[lines, 0]) / chunk.scale
            self._waiting.append((chunk, lines + part.start, columns, upper))
            if sum(len(each[2]) for each in self._waiting) > MAX_CANDIDATES:
                self.flush()

    def _product(self, queries: Any, documents: Any) -> Any:
        """Return half-precision products with sums in float32."""
        import torch

        settings: Any = torch.backends.cuda.matmul
        with _flag_lock:  # The setting is read when the product starts.
            before = settings.allow_fp16_reduced_precision_reduction
            settings.allow_fp16_reduced_precision_reduction = False
            try:
                return torch.mm(queries, documents.T)
            finally:
                settings.allow_fp16_reduced_precision_reduction = before

    def _scored(self, chunk: Chunk, lines: Any, columns: Any) -> tuple[Any, Any, Any]:
        """Return the queries, rows and float64 scores of pairs.

        The CPU scores the pairs whose sums could round differently.
        """
        import torch

        dots = torch.empty(len(lines), dtype=torch.float64, device=self._device)
        for at in range(0, len(lines), PAIRS_AT_ONCE):
            some = slice(at, at + PAIRS_AT_ONCE)
            documents = chunk.stored[columns[some]].double()
            norms = torch.linalg.vector_norm(documents, dim=1) * self._norms[lines[some]] if self._cosine else None
            dots[some] = documents.mul_(self._exact_queries[lines[some]]).sum(1)
            if norms is not None:
                dots[some] = torch.where(norms > 0, dots[some] / norms, 0)
        size = 1.0 if self._cosine else self._norms[lines] * chunk.longest_stored
        off = 8 * (self._queries.shape[1] + 8) * 2.0**-53 * size
        doubtful = ((dots - off).float() != (dots + off).float()).nonzero()[:, 0].cpu().numpy()
        queries, rows, scores = lines.cpu().numpy(), chunk.rows[columns.cpu().numpy()], dots.cpu().numpy()
        scores[doubtful] = self._scorer.score(queries[doubtful], rows[doubtful])
        return queries, rows, scores

    def _chunk(self, pieces: list[Block]) -> tuple[Chunk, bool]:
        """Return the chunk of these documents, and True if it stays on the GPU.

        An earlier search may have loaded it.
        """
        key = (str(self._device), self._cosine, pieces[0][0], sum(len(piece) for _, piece in pieces))
        if key in self._chunks:
            return self._chunks[key], True
        chunk = self._loaded(pieces)
        kept = sum(each.bytes for each in self._chunks.values())
        if kept + chunk.bytes > (kept + _free_bytes(self._device)) // 2:
            return chunk, False
        self._chunks[key] = chunk
        return chunk, True

    def _loaded(self, pieces: list[Block]) -> Chunk:
        import torch

        rows = np.concatenate([np.arange(first, first + len(piece), dtype=np.int32) for first, piece in pieces])
        shape = (-(-len(rows) // BUNDLE_SCORES) * BUNDLE_SCORES, self._queries.shape[1])
        halved = all(piece.dtype == np.float16 for _, piece in pieces)
        stored: Any = torch.zeros(shape, dtype=torch.half if halved else torch.float32, device=self._device)
        self._upload(pieces, stored)
        parts = [slice(at, at + CONVERTED_ROWS) for at in range(0, shape[0], CONVERTED_ROWS)]
        lengths = torch.cat([torch.linalg.vector_norm(stored[part].double(), dim=1) for part in parts])
        if len(bad := (~lengths.isfinite()).nonzero()):
            raise ValueError(f"row {rows[int(bad[0])]} has NaN or infinite values")
        longest, row = float(lengths.max()), int(rows[min(int(lengths.argmax()), len(rows) - 1)])
        if halved and not self._cosine and longest < 2.0**15:
            return Chunk(rows, stored, stored, 1.0, longest, 0.0, row, longest)
        scale = 1.0 if self._cosine else 2.0 ** -float(np.frexp(longest)[1])
        factors = torch.where(lengths > 0, 1 / lengths, 0) if self._cosine else torch.full_like(lengths, scale)
        halves = torch.empty(shape, dtype=torch.half, device=self._device)
        for part in parts:
            halves[part] = stored[part].double() * factors[part, None]
        size = 1.01 if self._cosine else 1.01 * longest * scale
        off = HALF_ERROR * size + SUBNORMAL_ERROR * shape[1] ** 0.5
        return Chunk(rows, stored, halves, scale, size, off, row, longest)

    def _upload(self, pieces: list[Block], stored: Any) -> None:
        """Copy vectors to the GPU through pinned memory. One buffer is filled while the other is sent."""
        import torch

        cuda: Any = torch.cuda if self._device.type == "cuda" else None
        shape = (max(len(piece) for _, piece in pieces), stored.shape[1])
        buffers = (
            [(torch.empty(shape, dtype=stored.dtype, pin_memory=True), cuda.Event()) for _ in "ab"] if cuda else []
        )
        at = 0
        for number, (_, piece) in enumerate(pieces):
            here = stored[at : at + len(piece)]
            at += len(piece)
            if not cuda:
                here.copy_(_tensor(piece))
                continue
            buffer, sent = buffers[number % 2]
            sent.synchronize()
            here.copy_(buffer[: len(piece)].copy_(_tensor(piece)), non_blocking=True)
            sent.record()


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
