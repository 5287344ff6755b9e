"""Exact search: every document is scored, and ranking and scores are those of float64 on every device.

A text has one vector (dense models) or several (late interaction, passages). Documents are multiplied with all queries
tile by tile, in float32 on the CPU (cpu_products.py) or in half precision on a GPU (gpu_products.py). These products
only select a shortlist with a proven margin (shortlist.py). Every document of it is scored in float64 from the stored
vectors, in one fixed order (exact_scores.py). The ranking uses these scores rounded to float32, and ties follow the
rule of data/runs/ties.py.
"""

from __future__ import annotations

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
from r2med.systems.retrieve.exact.exact_scores import Block, ExactScorer
from r2med.systems.retrieve.exact.gpu_products import Chunk, GpuProducts
from r2med.systems.retrieve.exact.shortlist import Shortlists
from r2med.systems.retrieve.exact.text_vectors import Exact, Hits, Piece, Rows, TextVectors

Products = CpuProducts | GpuProducts
"""Multiplies documents with the queries of one search and adds candidates to its shortlists."""


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
    vectors. Blocks that are mapped files stay open for the exact scores. Other blocks are held up to half of `memory`.
    Then their candidates are scored and the blocks are dropped. `cache` saves work when the same blocks are searched
    again.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    asked = TextVectors.of(queries)
    vectors = np.require(asked.vectors, np.float32, "C")
    if vectors.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {vectors.shape}")
    if not len(asked):
        return []
    scorer, gpu = ExactScorer(TextVectors(vectors, asked.offsets), bool(cosine)), gpu_of(device)
    k, cache = min(int(k), max(1, len(ranks))), cache or SearchCache()
    shortlists = Shortlists(scorer, k, ranks, cache.pool)
    products: Products = (
        CpuProducts(scorer, shortlists, cache.lengths, len(ranks), k, memory, cache.pool)
        if gpu is None
        else GpuProducts(scorer, shortlists, k, gpu, cache.on_gpu)
    )
    for tile in _tiles(blocks, products, scorer, shortlists, len(ranks), memory):
        products.search(tile)
        tile.clear()  # Otherwise its vectors would stay in memory while the next tile is read.
    products.flush()
    return shortlists.results()


def _tiles(
    blocks: Iterable[Block],
    products: Products,
    scorer: ExactScorer,
    shortlists: Shortlists,
    count: int,
    memory: int,
) -> Iterator[list[Piece]]:
    """Yield the pieces of each tile.

    When the memory for blocks is full, score all candidates and release the blocks.
    """
    tile: list[Piece] = []
    texts, vectors = products.tile_texts, products.tile_vectors
    for first, given in blocks:
        block, at = scorer.hold(first, given), 0
        if first + len(block) > count:
            raise ValueError(f"row {first + len(block) - 1} has no rank; there are only {count} ranks")
        while at < len(block):
            end = block.end_of_part(at, texts, min(vectors, products.piece_vectors))
            piece = Piece(first + at, block.part(at, end), (first, block))
            tile.append(piece)
            at, texts, vectors = end, texts - len(piece.texts), vectors - len(piece.texts.vectors)
            if texts <= 0 or vectors <= 0:
                yield tile
                tile, texts, vectors = [], products.tile_texts, products.tile_vectors
        if scorer.held_bytes > memory // 2:
            if tile:
                yield tile
                tile, texts, vectors = [], products.tile_texts, products.tile_vectors
            products.flush()
            shortlists.settle()
            scorer.release()
    if tile:
        yield tile
