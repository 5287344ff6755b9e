"""Exact search: every document is scored, and ranking and scores are those of float64 on every device.

A text has one vector (dense models) or several (late interaction, passages). Documents are multiplied with all queries
tile by tile, in float32 on the CPU (cpu_products.py) or in half precision on a GPU (gpu_products.py). These products
only select a shortlist with a proven margin (shortlist.py). Every document of it is scored in float64 from the stored
vectors, in one fixed order (exact_scores.py). The ranking uses these scores rounded to float32, and ties follow the
rule of data/runs/ties.py.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import cores
from r2med.models.encoders.devices import gpu_of
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.cpu_products import CpuProducts
from r2med.systems.retrieve.exact.exact_scores import Queries
from r2med.systems.retrieve.exact.gpu_products import Chunk, GpuProducts
from r2med.systems.retrieve.exact.shortlist import Nearest
from r2med.systems.retrieve.exact.text_vectors import Block, Exact, Hits, Part, Rows, TextVectors

Products = CpuProducts | GpuProducts
"""A search of the queries in one tile of documents after the other."""


class SearchCache:
    """Data that searches of the same documents use again: the lengths of the vectors, and vectors on a GPU."""

    def __init__(self) -> None:
        self.lengths: dict[tuple[int, int], Exact] = {}
        """First row and number of documents of a block -> the lengths of its vectors."""
        self.on_gpu: dict[tuple[str, bool, int, int], Chunk] = {}
        self._pool = ThreadPoolExecutor(cores()), os.getpid()

    @property
    def pool(self) -> ThreadPoolExecutor:
        """The threads of searches. To start them takes as long as to search for a question."""
        if self._pool[1] != os.getpid():  # a forked process has no threads
            self._pool = ThreadPoolExecutor(cores()), os.getpid()
        return self._pool[0]


def search_exact(
    queries: npt.NDArray[Any] | Ragged,
    blocks: Iterable[Block],
    k: int,
    ranks: Rows,
    *,
    cosine: bool = False,
    memory: int = 2 << 30,
    device: str = "auto",
    cache: SearchCache | None = None,
) -> list[Hits]:
    """Return each query's k best (rows, scores) in no particular order. `ranks` decide ties at the cutoff.

    `queries` are vectors, one or several for each query. `blocks` are (first row, float32 or float16 vectors) with
    ascending rows. A document's score is the sum, over the vectors of the query, of the best product with one of its
    vectors. Blocks that are not mapped files are held up to half of `memory`. Then their candidates are scored and the
    blocks are dropped. `cache` saves work when the same blocks are searched again.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    asked = TextVectors.of(queries)
    vectors = np.require(asked.vectors, np.float32, "C")
    if vectors.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {vectors.shape}")
    if not len(asked):
        return []
    scorer, gpu = Queries(TextVectors(vectors, asked.offsets), bool(cosine)), gpu_of(device)
    nearest, cache = Nearest(len(scorer), min(int(k), max(1, len(ranks))), ranks), cache or SearchCache()
    products: Products = (
        CpuProducts(scorer, nearest, cache.lengths, len(ranks), memory, cache.pool)
        if gpu is None
        else GpuProducts(scorer, nearest, gpu, cache.on_gpu)
    )
    for tile in _tiles(_checked(blocks, vectors.shape[1], len(ranks)), products, memory // 2):
        products.search(tile)
        tile.clear()  # Otherwise its vectors would stay in memory while the next tile is read.
    products.flush()
    return nearest.hits


def _checked(blocks: Iterable[Block], dimension: int, ranks: int) -> Iterator[tuple[int, TextVectors]]:
    """Yield the first row and the vectors of each block. Raise ValueError if it does not fit the search."""
    end = 0
    for first, given in blocks:
        block = TextVectors.of(given)
        if block.vectors.dtype not in (np.float32, np.float16):
            raise ValueError(f"documents must be float32 or float16, not {block.vectors.dtype}")
        if block.vectors.ndim != 2 or block.vectors.shape[1] != dimension:
            raise ValueError(f"documents of shape {block.vectors.shape} do not fit queries of dimension {dimension}")
        if first < end:
            raise ValueError(f"row {first} comes after row {end - 1}: blocks must have ascending rows")
        end = first + len(block)
        if end > ranks:
            raise ValueError(f"row {end - 1} has no rank; there are only {ranks} ranks")
        yield first, TextVectors(np.ascontiguousarray(block.vectors), block.offsets)


def _tiles(blocks: Iterable[tuple[int, TextVectors]], products: Products, memory: int) -> Iterator[list[Part]]:
    """Yield the parts of each tile. Blocks that are not mapped files take at most this memory, or are one block."""
    tile: list[Part] = []
    texts, vectors, held = products.tile_texts, products.tile_vectors, 0
    for first, block in blocks:
        at = 0
        # The system can drop the pages of a mapped file itself.
        held += 0 if _is_mapped(block.vectors) else block.vectors.nbytes
        while at < len(block):
            end = block.end_of_part(at, texts, min(vectors, products.part_vectors))
            part = block.part(at, end)
            tile.append((first + at, part))
            at, texts, vectors = end, texts - len(part), vectors - len(part.vectors)
            if texts <= 0 or vectors <= 0 or (at == len(block) and held > memory):
                yield tile
                tile, texts, vectors, held = [], products.tile_texts, products.tile_vectors, 0
    if tile:
        yield tile


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
