"""Exact dense search: every document is scored, and the ranking is the float64 ranking on every device.

Documents are multiplied with all queries tile by tile, in float32 on the CPU (cpu_products.py) or in half precision on
a GPU (gpu_products.py). These products only select a shortlist with a proven margin (shortlist.py). Float64 scores of
the stored vectors decide what the margin cannot (exact_scores.py). The ranking uses these scores rounded to float32,
and ties follow the rule of data/runs/ties.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from r2med.foundation.engine import cores
from r2med.models.encoders.devices import gpu_of
from r2med.models.encoders.encoder import Vectors
from r2med.systems.retrieve.dense.cpu_products import CpuProducts
from r2med.systems.retrieve.dense.exact_scores import Block, Exact, ExactScorer, Rows
from r2med.systems.retrieve.dense.gpu_products import Chunk, GpuProducts
from r2med.systems.retrieve.dense.shortlist import Shortlists

Products = CpuProducts | GpuProducts
"""Multiplies documents with the queries of one search and adds candidates to its shortlists."""

PIECE_ROWS = 1 << 12
"""Maximum number of documents multiplied at a time. Their scores for a hundred queries fit into the cache of a core."""


class SearchCache:
    """Data that searches of the same documents use again: the lengths of the documents, and vectors on a GPU."""

    def __init__(self) -> None:
        self._lengths: Exact = np.empty(0)
        self.on_gpu: dict[tuple[str, bool, int, int], Chunk] = {}

    def lengths(self, count: int) -> Exact:
        """Return the array of the lengths of all documents. Unknown lengths are NaN."""
        if len(self._lengths) != count:
            self._lengths = np.full(count, np.nan)
        return self._lengths


def search_exact(
    queries: Vectors,
    blocks: Iterable[Block],
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    cosine: bool = False,
    memory: int = 2 << 30,
    device: str = "auto",
    cache: SearchCache | None = None,
) -> list[tuple[Rows, Vectors]]:
    """Return each query's k best (rows, scores) in no particular order. `ranks` decide ties at the cutoff.

    `blocks` are (first row, float32 or float16 vectors) with ascending rows. Blocks that are mapped files stay open for
    the exact scores. Other blocks are held up to half of `memory`. Then their candidates are scored and the blocks are
    dropped. `cache` saves work when the same blocks are searched again.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    queries = np.require(queries, np.float32, "C")
    if queries.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {queries.shape}")
    if not len(queries):
        return []
    scorer, gpu, cache = ExactScorer(queries, bool(cosine)), gpu_of(device), cache or SearchCache()
    k = min(int(k), max(1, len(ranks)))
    with ThreadPoolExecutor(cores()) as pool:
        shortlists = Shortlists(scorer, k, ranks, pool)
        products: Products = (
            CpuProducts(scorer, shortlists, cache.lengths(len(ranks)), k, memory, pool)
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
) -> Iterator[list[Block]]:
    """Yield the pieces of each tile.

    When the memory for blocks is full, score all candidates and release the blocks.
    """
    tile: list[Block] = []
    room = products.tile_rows
    for first, given in blocks:
        if first + len(given) > count:
            raise ValueError(f"row {first + len(given) - 1} has no rank; there are only {count} ranks")
        block, at = scorer.hold(first, given), 0
        while at < len(block):
            piece = block[at : at + min(room, PIECE_ROWS)]
            tile.append((first + at, piece))
            at, room = at + len(piece), room - len(piece)
            if not room:
                yield tile
                tile, room = [], products.tile_rows
        if scorer.held_bytes > memory // 2:
            if tile:
                yield tile
                tile, room = [], products.tile_rows
            products.flush()
            shortlists.settle()
            scorer.release()
    if tile:
        yield tile
