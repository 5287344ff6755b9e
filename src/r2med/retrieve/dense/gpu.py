"""Exact dense search on a GPU: products in half precision propose, float64 decides.

A half-precision score is off by at most what is proven here: the rounding of the documents, of the query, of the sums
and of the score. k documents whose scores less that bound are above a floor make the floor one for the k best; every
document whose score plus that bound reaches it is a candidate, and all candidates are scored again in float64 from the
vectors as they are stored. The host's sums decide: where theirs could round to another float32, it adds up too.

Vectors stay on the GPU between searches if they fit. Otherwise they stream through pinned memory, while the chunk
before is searched.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.rescoring import Exact, Rescorer, Rows
from r2med.retrieve.run import best

HALF = 2.0**-11
"""The relative rounding error of half precision at most, above what it calls subnormal."""
SMALLEST = 2.0**-25
"""The rounding error below that."""
ROWS = 1 << 20
"""Documents a chunk at most."""
STAGED = 1 << 25
"""Bytes of a pinned buffer."""
BUNDLE = 128
"""Scores of which the largest is looked at first, at most."""
PART = 1 << 18
"""Bundles whose scores are looked at together."""
PAIRS = 1 << 16
"""Candidates that are scored again together."""
MOST = 1 << 25
"""Candidates on the GPU."""

Block = tuple[int, npt.NDArray[Any]]
"""The row of the first document, and vectors in float32 or float16."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive documents on the GPU, in half precision."""

    first: int
    count: int
    stored: Any
    """The vectors as they are."""
    vectors: Any
    """In half precision, times `scale` or of length 1 for cosines; rows of zeros fill the last bundle."""
    scale: float
    """A power of two: 1, unless the vectors are too long or too short for half precision."""
    longest: float
    """The largest length of one of the rounded vectors."""
    off: float
    """How far a rounded vector is from the true one, at most."""


class GpuSearch:
    """Searches with one set of queries."""

    def __init__(
        self,
        queries: Vectors,
        k: int,
        ranks: npt.NDArray[np.int32],
        cosine: bool,
        memory: int,
        device: str,
        pool: ThreadPoolExecutor,
    ) -> None:
        import torch

        self._k, self._ranks, self._cosine, self._memory = k, ranks, cosine, memory
        self._rescorer = Rescorer(queries, cosine, pool)
        norms = self._rescorer.norms[:, None]
        unit = np.divide(queries, norms, out=np.zeros(queries.shape), where=norms > 0)
        halves = unit.astype(np.float16)
        self._device = torch.device(device)
        self._queries = torch.from_numpy(halves).to(self._device)
        self._lost = torch.from_numpy(np.linalg.norm(unit - halves, axis=1)).to(self._device)
        self._top = torch.full((len(queries), k), -torch.inf, dtype=torch.float64, device=self._device)
        self._exact = torch.from_numpy(queries).to(self._device, torch.float64)
        self._norms = torch.from_numpy(self._rescorer.norms).to(self._device)
        self._results = [(np.empty(0, np.int32), np.empty(0, np.float32)) for _ in queries]
        self._candidates: list[tuple[Any, ...]] = []
        self._waiting = 0
        self._loader = Loader(self._device, cosine, queries.shape)

    def run(self, blocks: Iterable[Block], kept: list[Chunk] | None) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query; `kept` has the corpus on the GPU, or takes it if it is empty and it fits."""
        import torch

        with torch.inference_mode(), _full_sums():
            if kept:
                for first, block in blocks:
                    self._rescorer.hold(first, block)
                for chunk in list(kept):
                    self._score(chunk)
                return self._settle()
            self._more, stream = True, iter(blocks)
            chunks: list[Chunk] | None = [] if kept is not None and self._loader.fits(blocks) else None
            while self._more:
                for chunk in _ahead(self._loader.chunks(self._held(stream))):
                    self._score(chunk)
                    if chunks is not None:
                        chunks.append(chunk)
                self._settle()
                self._rescorer.release()
            if kept is not None and chunks is not None:
                kept[:] = chunks  # at once: another thread may search with them
            return self._results

    def _held(self, blocks: Iterator[Block]) -> Iterator[Block]:
        """Yield blocks, in reach of the rescorer, until there are no more or as many are held as memory allows."""
        for first, block in blocks:
            self._rescorer.hold(first, block)
            yield first, block
            if self._rescorer.held > self._memory // 2:
                return
        self._more = False

    def _score(self, chunk: Chunk) -> None:
        """Find the candidates of a chunk."""
        import torch

        scores = torch.mm(self._queries, chunk.vectors.T)
        scores[:, chunk.count :] = -torch.inf
        size = min(BUNDLE, 1 << max(0, (chunk.count // (4 * self._k)).bit_length() - 1))
        bundles = scores.view(len(scores), size, -1)  # its columns: the reduction then reads whole lines of memory
        maxima = bundles.amax(1).double()
        sums = (chunk.vectors.shape[1] + 16) * 2.0**-22 * chunk.longest
        off = chunk.off + self._lost * chunk.longest + sums

        def upper(values: Any, queries: Any) -> Any:
            return (values + 2 * HALF * values.abs() + off[queries, None]) / chunk.scale

        lower = (maxima - 2 * HALF * maxima.abs() - off[:, None]) / chunk.scale
        self._top = torch.topk(torch.cat((self._top, lower), 1), self._k, dim=1, sorted=False).values
        floor = self._top.amin(1)
        everyone = torch.arange(len(scores), device=self._device)
        for part in (upper(maxima, everyone) >= floor[:, None]).nonzero().split(PART):
            queries, bundle = part.T
            values = upper(bundles[queries, :, bundle].double(), queries)
            which, within = (values >= floor[queries, None]).nonzero().T
            queries, rows = queries[which], within * bundles.shape[2] + bundle[which]
            self._candidates.append(
                (queries, chunk.first + rows, values[which, within], *self._rescored(chunk, queries, rows))
            )
            self._waiting += len(which)
            if self._waiting > MOST:
                self._settle()

    def _rescored(self, chunk: Chunk, queries: Any, rows: Any) -> tuple[Any, Any]:
        """Return the scores of pairs in float64, and what their rounding is relative to."""
        import torch

        dots, sizes = torch.empty_like(rows, dtype=torch.float64), torch.empty_like(rows, dtype=torch.float64)
        for at in range(0, len(rows), PAIRS):
            part = slice(at, at + PAIRS)
            documents = chunk.stored[rows[part]].double()
            sizes[part] = torch.linalg.vector_norm(documents, dim=1) * self._norms[queries[part]]
            dots[part] = documents.mul_(self._exact[queries[part]]).sum(1)
        if self._cosine:
            return torch.where(sizes > 0, dots / sizes, 0), torch.ones_like(sizes)
        return dots, sizes

    def _settle(self) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query, of all candidates up to now."""
        import torch

        if not self._candidates:
            return self._results
        queries, rows, values, doubles, lengths = (torch.cat(part) for part in zip(*self._candidates, strict=True))
        self._candidates, self._waiting = [], 0
        still = (values >= self._top.amin(1)[queries]).nonzero()[:, 0]
        still = still[queries[still].argsort(stable=True)]
        which, scores, sizes = (each[still].cpu().numpy() for each in (queries, doubles, lengths))
        found = rows[still].int().cpu().numpy()
        off = 8 * (self._exact.shape[1] + 8) * 2.0**-53 * sizes
        with np.errstate(over="ignore"):
            doubtful = np.flatnonzero((scores - off).astype(np.float32) != (scores + off).astype(np.float32))
            scores[doubtful] = self._rescorer.score(which[doubtful], found[doubtful])
            rounded = scores.astype(np.float32)
        ends = np.searchsorted(which, np.arange(len(self._results)), side="right")
        for query, (begin, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
            known = self._results[query]
            together = np.concatenate((known[0], found[begin:end])), np.concatenate((known[1], rounded[begin:end]))
            kept = best(together[1], self._k, self._ranks[together[0]])
            self._results[query] = together[0][kept], together[1][kept]
        return self._results


class Loader:
    """Brings vectors onto a GPU, in chunks of half precision."""

    def __init__(self, device: Any, cosine: bool, queries: tuple[int, ...]) -> None:
        import torch

        self._device, self._cosine = device, cosine
        self._free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else 1 << 30
        rows = min(ROWS, self._free // 32 // max(queries)) // BUNDLE * BUNDLE
        self._rows = max(BUNDLE, rows)
        self._staged: list[Any] = []

    def fits(self, blocks: Iterable[Block]) -> bool:
        """Return whether all vectors take at most half of the GPU's free memory: models need theirs."""
        size = sum(block.nbytes + 2 * block.size * self._doubled(block) for _, block in blocks)
        return size <= self._free // 2

    def _doubled(self, block: npt.NDArray[Any]) -> bool:
        """Return whether the halves of these vectors are others than those that are stored."""
        return self._cosine or block.dtype != np.float16

    def chunks(self, blocks: Iterable[Block]) -> Iterator[Chunk]:
        """Yield chunks of consecutive rows."""
        first, end = 0, 0
        pieces: list[npt.NDArray[Any]] = []
        for start, block in blocks:
            for at in range(0, len(block), self._rows):
                piece = block[at : at + self._rows]
                if pieces and (
                    start + at != end or end - first + len(piece) > self._rows or piece.dtype != pieces[0].dtype
                ):
                    yield self._load(first, pieces)
                    pieces = []
                if not pieces:
                    first = start + at
                pieces.append(piece)
                end = start + at + len(piece)
        if pieces:
            yield self._load(first, pieces)

    def _load(self, first: int, pieces: list[npt.NDArray[Any]]) -> Chunk:
        import torch

        count, dimension = sum(map(len, pieces)), pieces[0].shape[1]
        shape = (-(-count // BUNDLE) * BUNDLE, dimension)
        dtype = torch.half if pieces[0].dtype == np.float16 else torch.float32
        stored: Any = torch.empty(shape, dtype=dtype, device=self._device)
        stored[count:] = 0
        self._copy(pieces, stored)
        lengths: Any = torch.linalg.vector_norm(stored[:count], dim=1, dtype=torch.float32)
        shortest, longest = map(float, lengths.aminmax())
        source, scale = stored, 1.0
        if not ((shortest if self._cosine else longest) > 2.0**-6 and longest < 2.0**15):
            pieces, scale = _fitted(first, pieces, self._cosine)
            source = torch.zeros(shape, dtype=torch.float32, device=self._device)
            self._copy(pieces, source)
            lengths = torch.linalg.vector_norm(source[:count], dim=1)
            longest = float(lengths.max())
        vectors = source
        if self._cosine or source.dtype != torch.half:
            vectors = torch.zeros(shape, dtype=torch.half, device=self._device)
            for at in range(0, count, PAIRS):
                part = slice(at, min(at + PAIRS, count))
                divisor = lengths[part, None].clamp(min=2.0**-20) if self._cosine else 1
                vectors[part] = source[part].float() / divisor
        longest = 1.01 if self._cosine else 1.01 * longest
        return Chunk(first, count, stored, vectors, scale, longest, HALF * longest + SMALLEST * dimension**0.5)

    def _copy(self, pieces: list[npt.NDArray[Any]], vectors: Any) -> None:
        """Copy vectors through pinned memory, while the GPU may do other work."""
        import torch

        rows = max(1, STAGED // max(1, vectors.shape[1] * vectors.element_size()))
        parts = (piece[at : at + rows] for piece in pieces for at in range(0, len(piece), rows))
        if self._device.type != "cuda":
            for piece, end in zip(pieces, np.cumsum([len(piece) for piece in pieces]), strict=True):
                vectors[end - len(piece) : end].copy_(_tensor(piece))
            return
        if not self._staged or self._staged[0].dtype != vectors.dtype:
            shape = (rows, vectors.shape[1])
            self._staged = [torch.empty(shape, dtype=vectors.dtype, pin_memory=True) for _ in range(4)]
        cuda: Any = torch.cuda
        copies = [cuda.Event() for _ in self._staged]
        stream = cuda.Stream(self._device)
        stream.wait_stream(cuda.current_stream(self._device))  # who had this memory before is done with it
        at = 0
        with cuda.stream(stream):
            for number, part in enumerate(parts):
                buffer, copied = self._staged[number % 4][: len(part)], copies[number % 4]
                copied.synchronize()
                buffer.copy_(_tensor(part))
                vectors[at : at + len(part)].copy_(buffer, non_blocking=True)
                copied.record(stream)
                at += len(part)
        stream.synchronize()


def _fitted(first: int, pieces: list[npt.NDArray[Any]], cosine: bool) -> tuple[list[npt.NDArray[Any]], float]:
    """Return vectors that half precision can hold, and what they were multiplied by. Raises ValueError if none can."""
    squares = [np.einsum("ij,ij->i", piece, piece, dtype=np.float64) for piece in pieces]
    lengths: Exact = np.sqrt(np.concatenate(squares))
    if len(bad := np.flatnonzero(~np.isfinite(lengths))):
        raise ValueError(f"row {first + bad[0]} has NaN or infinite values")
    scale = 1.0 if cosine else 2.0 ** -float(np.frexp(lengths.max(initial=0))[1])
    with np.errstate(divide="ignore"):
        factors = np.where(lengths > 0, 1 / lengths, 0) if cosine else np.full(len(lengths), scale)
    parts = np.split(factors, np.cumsum([len(piece) for piece in pieces])[:-1])
    return [(piece * part[:, None]).astype(np.float32) for piece, part in zip(pieces, parts, strict=True)], scale


def _tensor(array: npt.NDArray[Any]) -> Any:
    """Return a tensor over the same memory. torch warns of read-only arrays; this one is only read."""
    import warnings

    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(np.ascontiguousarray(array))


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield chunks; the next one is loaded meanwhile."""
    import torch

    def load() -> list[Chunk]:
        with torch.inference_mode():
            return list(islice(chunks, 1))

    with ThreadPoolExecutor(1) as loader:
        loading = loader.submit(load)
        while loaded := loading.result():
            loading = loader.submit(load)
            yield loaded[0]


@contextlib.contextmanager
def _full_sums() -> Iterator[None]:
    """Have sums of half-precision products in float32, whatever the program around us chose for its models."""
    import torch

    flags = torch.backends.cuda.matmul
    before = flags.allow_fp16_reduced_precision_reduction
    flags.allow_fp16_reduced_precision_reduction = False
    try:
        with torch.autocast("cuda", enabled=False), torch.autocast("cpu", enabled=False):
            yield
    finally:
        flags.allow_fp16_reduced_precision_reduction = before
