"""Exact dense search: every document scored, the k best of each query, the same ranking on every device.

Products in float32 differ in their last bits between libraries. The fast scores therefore only choose
candidates, down to a rounding bound below the k-th best, and order those that are clearly apart.
Where two are so near that rounding may have swapped them, and at the cut, float64 decides.

Threads multiply some of the documents each with all queries, and then choose for some of the queries each among all
those documents.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from r2med.core.errors import MissingExtraError
from r2med.encoders.devices import devices
from r2med.encoders.encoder import Vectors
from r2med.retrieve.dense.exact.arithmetic import own_threads
from r2med.retrieve.dense.exact.arrays import Asked, Block, Rows, Step, check_scores
from r2med.retrieve.dense.exact.gpu import GpuSearch
from r2med.retrieve.dense.exact.grouped import GroupedShortlists
from r2med.retrieve.dense.exact.kept import Kept
from r2med.retrieve.dense.exact.products import Products
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.workspace import Workspace

BATCH_SCORES = 1 << 22
"""Scores that each thread chooses from together."""
BATCH_DOCUMENTS = 1 << 15
"""Documents whose scores are chosen from together, at least: out of fewer, too many are candidates."""
APART = 32
"""Scores left free between those of two queries."""


def search_exact(
    queries: Vectors,
    blocks: Iterable[Block],
    k: int,
    ranks: npt.NDArray[np.int32],
    *,
    cosine: bool = False,
    memory: int = 2 << 30,
    device: str = "auto",
    kept: Kept | None = None,
) -> list[tuple[Rows, Vectors]]:
    """Return each query's k best (rows, scores) in no particular order; a tie at the cut goes to the higher rank.

    `blocks` are (first row, float32 or float16 vectors) in ascending rows, and stay as they are. Those that are mapped
    files stay open for the deciding scores; of others as much is held as half of `memory`, after which all candidates
    among them are scored exactly at once, so that they can go: correct, but slower than mapped files.
    Lengths of vectors are sampled: one document many times as long as its neighbours may be missed, if its sums
    cancel or fall below the range of float32. Sums above it are refused.
    `kept` is what searches of the same blocks leave to the next: on a GPU their vectors, if they fit there (blocks must
    then be such that they can be read twice), and on a CPU what makes products cosines.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    queries = np.require(queries, np.float32, ("C", "A", "W"))
    if queries.ndim != 2:
        raise ValueError(f"queries must be rows of vectors, not an array of shape {queries.shape}")
    if not len(queries):
        return []
    asked = Asked(queries, min(int(k), max(1, len(ranks))), ranks, bool(cosine), memory)
    if (gpu := _gpu(device)) is not None:
        return GpuSearch(asked, gpu).run(blocks, kept.chunks(gpu, asked.cosine) if kept else None)
    with own_threads() as (multiplying, choosing):
        return _Search(asked, kept or Kept(), multiplying, choosing).run(blocks)


def _gpu(device: str) -> str | None:
    """Return the GPU of a choice; None for the CPU. Raises UserError if this machine has no such device."""
    if device == "cpu":
        return None
    if sys.modules.get("torch") is None and not importlib.util.find_spec("torch"):
        if device == "auto":
            return None
        raise MissingExtraError(f"searching on {device}", "dense")
    name = devices(device)[0]
    return name if name.startswith("cuda") else None


_spare: list[Workspace] = []
"""What the last search left."""


class _Search:
    def __init__(self, asked: Asked, kept: Kept, multiplying: int, choosing: int) -> None:
        queries, k, ranks, cosine, memory = asked
        self._ranks, self._memory = ranks, memory
        self._rescorer = Rescorer(queries, cosine)
        self._rounding = Rounding(self._rescorer)
        self._queries = queries
        factors = kept.factors(len(ranks)) if cosine else None
        self._products = Products(self._rescorer, factors, self._rounding, multiplying)
        try:
            self._workspace = _spare.pop()
        except IndexError:  # the first search, or another has it
            self._workspace = Workspace()
        self._shortlists = GroupedShortlists(asked, self._rounding, self._rescorer, self._workspace, choosing)
        wanted = min(max(choosing * BATCH_SCORES // len(queries), BATCH_DOCUMENTS, 8 * k), len(ranks))
        self._documents_at_once = max(1, min(wanted, memory // 8 // (4 * max(1, *queries.shape))))

    def run(self, blocks: Iterable[Block]) -> list[tuple[Rows, Vectors]]:
        """Return the k best of each query."""
        left, found = len(self._ranks), []
        for batch in self._batches(blocks):
            left -= sum(len(block) for _, block in batch)
            scores, rows = self._place(batch)
            step = self._shortlists.step(scores, rows, last=not left)
            self._score(batch, scores, rows, step)
            found = step()
            if not left:
                break
        if not found:  # there are fewer documents than ranks
            none = np.empty((len(self._queries), 0), np.float32)
            found = self._shortlists.step(none, np.empty(0, np.int32), last=True)()
        if self._workspace.size <= self._memory // 4:
            _spare[:] = [self._workspace]  # not if anything failed: a thread may still write to it
        return found

    def _batches(self, blocks: Iterable[Block]) -> Iterator[list[Block]]:
        """Yield pieces of blocks that are chosen from together; settle when memory allows no more to be held."""
        batch: list[Block] = []
        left = self._documents_at_once
        for first, given in blocks:
            block, at = self._rescorer.hold(first, given), 0
            if first + len(block) > len(self._ranks):
                raise ValueError(f"row {first + len(block) - 1} has no rank: there are {len(self._ranks)}")
            while at < len(block):
                piece = block[at : at + left]
                batch.append((first + at, piece))
                at, left = at + len(piece), left - len(piece)
                if not left:
                    yield batch
                    batch, left = [], self._documents_at_once
            if self._rescorer.held > self._memory // 2:
                if batch:
                    yield batch
                    batch, left = [], self._documents_at_once
                self._shortlists.settle()
                self._rescorer.release()
        if batch:
            yield batch

    def _place(self, batch: list[Block]) -> tuple[Vectors, Rows]:
        """Return where the scores of some documents go, with room behind them, and their rows."""
        rows = self._workspace.take("rows", (sum(len(block) for _, block in batch),), np.int32)
        at = 0
        for first, block in batch:
            rows[at : at + len(block)] = np.arange(first, first + len(block), dtype=np.int32)
            at += len(block)
        # Queries are not a power of two apart: the product writes many at once, which would share a line of the cache.
        return self._workspace.take("scores", (len(self._queries), len(rows) + APART), np.float32), rows

    def _score(self, batch: list[Block], scores: Vectors, rows: Rows, step: Step) -> None:
        """Write the scores of some documents."""
        self._products.write(batch, scores, step)
        if self._rounding.may_overflow():
            check_scores(rows, scores[:, : len(rows)])
