"""Bringing vectors onto a GPU in half precision: once, or in chunks through pinned memory beside a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.retrieve.dense.exact.arithmetic import tensor
from r2med.retrieve.dense.exact.arrays import Block, Exact

HALF = 2.0**-11
"""The relative rounding error of half precision at most, above what it calls subnormal."""
SMALLEST = 2.0**-25
"""The rounding error below that."""
BUNDLE = 128
"""Scores of which the largest is looked at first, at most; chunks are filled up to whole bundles."""
ROWS = 1 << 20
"""Documents a chunk at most."""
STAGED = 1 << 25
"""Bytes of a pinned buffer."""
BUFFERS = 4
"""Pinned buffers: while one is sent, the next is filled."""
CONVERTED = 1 << 16
"""Vectors that are converted together."""


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


class Loader:
    """Brings vectors onto a GPU, in chunks of half precision."""

    def __init__(self, device: Any, cosine: bool, queries: tuple[int, ...]) -> None:
        import torch

        self._device, self._cosine = device, cosine
        self._free_bytes = _free_bytes(device) if device.type == "cuda" else 1 << 30
        rows = min(ROWS, self._free_bytes // 32 // max(queries)) // BUNDLE * BUNDLE
        self._rows = max(BUNDLE, rows)
        self._staged: list[Any] = []
        cuda: Any = torch.cuda
        self._streams = (cuda.Stream(device), cuda.current_stream(device)) if device.type == "cuda" else None
        """That of loading, and that of searching."""

    def fits(self, blocks: Iterable[Block]) -> bool:
        """Return whether all vectors take at most half of the GPU's free memory: models need theirs."""
        size = sum(block.nbytes + 2 * block.size * self._doubled(block) for _, block in blocks)
        return size <= self._free_bytes // 2

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

        if self._streams is None:
            return self._made(first, pieces)
        loading, searching = self._streams
        cuda: Any = torch.cuda
        with cuda.stream(loading):
            chunk = self._made(first, pieces)
            loading.synchronize()
        for vectors in (chunk.stored, chunk.vectors):
            vectors.record_stream(searching)  # its memory is not taken for the next chunk before that is done with it
        return chunk

    def _made(self, first: int, pieces: list[npt.NDArray[Any]]) -> Chunk:
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
            for at in range(0, count, CONVERTED):
                part = slice(at, min(at + CONVERTED, count))
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
                vectors[end - len(piece) : end].copy_(tensor(np.ascontiguousarray(piece)))
            return
        if not self._staged or self._staged[0].dtype != vectors.dtype:
            shape = (rows, vectors.shape[1])
            self._staged = [torch.empty(shape, dtype=vectors.dtype, pin_memory=True) for _ in range(BUFFERS)]
        cuda: Any = torch.cuda
        copies = [cuda.Event() for _ in self._staged]
        at = 0
        for number, part in enumerate(parts):
            buffer, copied = self._staged[number % BUFFERS][: len(part)], copies[number % BUFFERS]
            copied.synchronize()
            buffer.copy_(tensor(np.ascontiguousarray(part)))
            vectors[at : at + len(part)].copy_(buffer, non_blocking=True)
            copied.record()
            at += len(part)
        for copied in copies:
            copied.synchronize()


def _free_bytes(device: Any) -> int:
    """Return the bytes of a GPU that nobody uses: torch keeps some that it was given back."""
    from torch import cuda

    return int(cuda.mem_get_info(device)[0] + cuda.memory_reserved(device) - cuda.memory_allocated(device))


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


def loaded_ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
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
