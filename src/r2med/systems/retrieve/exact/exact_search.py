"""Exact search: every document is scored, and ranking and scores are those of float64 on every device.

A text has one vector (dense models) or several (late interaction, passages). Documents are multiplied with all queries
tile by tile, in float64 on a CPU (cpu_products.py), or in half precision on a GPU (gpu_products.py), where float64
decides among the candidates. A score that depends on the order of its sum is added up again in one fixed order
(exact_scores.py). The ranking uses these scores rounded to float32, and ties follow the rule of data/runs/ties.py.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.models.encoders.devices import gpu_of
from r2med.models.encoders.ragged import Ragged
from r2med.systems.retrieve.exact.cpu_products import CpuProducts, SearchCache
from r2med.systems.retrieve.exact.exact_scores import Nearest, Queries
from r2med.systems.retrieve.exact.gpu_products import GpuProducts
from r2med.systems.retrieve.exact.text_vectors import Block, Hits, Rows, TextVectors, Tile


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
    texts = TextVectors.of(queries)
    vectors = np.require(texts.vectors, np.float32, "C")
    if vectors.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {vectors.shape}")
    if not len(texts):
        return []
    scored, gpu = Queries(TextVectors(vectors, texts.offsets), bool(cosine)), gpu_of(device)
    nearest, cache = Nearest(len(scored), min(int(k), max(1, len(ranks))), ranks), cache or SearchCache()
    documents = ((first, TextVectors.of(block)) for first, block in blocks)
    if gpu is None:
        on_cpu = CpuProducts(scored, nearest, len(ranks), memory, cache)
        for tile in _tiles(documents, memory // 2, on_cpu.tile_texts):
            on_cpu.search(tile)
            tile.clear()  # Otherwise its vectors would stay in memory while the next tile is read.
    else:
        on_gpu = GpuProducts(scored, nearest, gpu, cache.on_gpu)
        on_gpu.search(_tiles(documents, memory // 2, on_gpu.tile_texts, on_gpu.tile_vectors))
    return nearest.hits


def _tiles(
    documents: Iterable[tuple[int, TextVectors]], memory: int, texts: int, vectors: int = 1 << 62
) -> Iterator[Tile]:
    """Yield the documents in tiles. A tile has at most `texts` texts and `vectors` vectors, or a single larger text.

    The blocks of a tile that are not mapped files take at most `memory` bytes, or the tile has a single larger block.
    """
    tile: Tile = []
    free_texts, free_vectors, held = texts, vectors, 0
    for first, block in documents:
        # The system can drop the pages of a mapped file itself.
        held += 0 if _is_mapped(block.vectors) else block.vectors.nbytes
        for begin, end in block.parts(vectors, texts):
            part = block.part(begin, end)
            if tile and (len(part) > free_texts or len(part.vectors) > free_vectors):
                yield tile
                tile, free_texts, free_vectors = [], texts, vectors
            tile.append((np.arange(first + begin, first + end, dtype=np.int32), part))
            free_texts, free_vectors = free_texts - len(part), free_vectors - len(part.vectors)
        if held > memory:
            yield tile
            tile, free_texts, free_vectors, held = [], texts, vectors, 0
    if tile:
        yield tile


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)
