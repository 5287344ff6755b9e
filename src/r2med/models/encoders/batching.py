"""Batch length-sorted texts by a token budget.

This gives little padding and bounded memory; rows keep the input order.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from r2med.foundation.core.errors import UserError
from r2med.models.encoders.encoder import Vectors, check_finite

Rows = Callable[[Sequence[int]], Vectors]
"""Function that encodes the texts at these positions, one row each."""


class DoesNotFitError(UserError):
    """Error for a single text that does not fit into memory, so that the batch cannot be halved."""


@dataclass
class Worker:
    """One device, with its encoding function and the number of padded tokens that fit into its memory."""

    rows: Rows
    budget: int
    is_out_of_memory: Callable[[Exception], bool] = lambda error: isinstance(error, MemoryError)
    release: Callable[[], None] = lambda: None
    """Function that releases cached memory after a failure."""


Finished = Callable[[Sequence[int], Vectors], None]
"""Function that gets the positions and rows of each batch as soon as it is finished, one batch at a time."""


def split(positions: Sequence[int], lengths: Sequence[int], budget: int, start: int = 0) -> Iterator[Sequence[int]]:
    """Yield batches of positions, longest first, whose padded size (longest text times count) stays within the budget.

    A text that is longer than the budget becomes a batch of its own.
    """
    while start < len(positions):
        count = max(1, budget // max(1, lengths[positions[start]]))
        yield positions[start : start + count]
        start += count


def longest_first(lengths: Sequence[int]) -> list[int]:
    """Return the positions by decreasing length. An out-of-memory error then occurs in the first batch."""
    return [int(i) for i in np.argsort(-np.asarray(lengths, dtype=np.int64), kind="stable")]


def encode_in_batches(lengths: Sequence[int], workers: Sequence[Worker], finished: Finished | None = None) -> Vectors:
    """Return one row per length, in the order of the lengths. Each worker takes the next batch when it is free."""
    if not lengths:
        return np.empty((0, 0), dtype=np.float32)
    work = _Work(lengths, finished)
    if len(workers) == 1:
        work.do(workers[0])
    else:
        with ThreadPoolExecutor(len(workers), thread_name_prefix="encode") as pool:
            for done in [pool.submit(work.do, worker) for worker in workers]:
                done.result()
    assert work.matrix is not None
    return work.matrix


class _Work:
    """Gives batches to workers, each within its own budget, and collects their rows in one matrix."""

    def __init__(self, lengths: Sequence[int], finished: Finished | None) -> None:
        self._lengths = lengths
        self._order = longest_first(lengths)
        self._next = 0
        self._finished = finished
        self._lock = threading.Lock()
        self.matrix: Vectors | None = None
        """Allocated when the first rows show its width."""

    def do(self, worker: Worker) -> None:
        """Let one worker encode batches until none is left."""
        try:
            while batch := self._take(worker.budget):
                pieces = [batch]
                while pieces:
                    rows = _attempt(worker, pieces[0], self._lengths)
                    if rows is not None:
                        self._put(pieces.pop(0), rows)
                        continue
                    # The traceback is gone here, and with it the memory that the failed attempt still held.
                    worker.release()
                    worker.budget = max(1, self._lengths[pieces[0][0]] * len(pieces[0]) // 2)
                    left = [position for piece in pieces for position in piece]
                    pieces = list(split(left, self._lengths, worker.budget))
        except BaseException:
            with self._lock:
                # Otherwise the other devices would continue for hours before the error is shown.
                self._next = len(self._order)
            raise

    def _take(self, budget: int) -> Sequence[int]:
        with self._lock:
            batch = next(split(self._order, self._lengths, budget, self._next), ())
            self._next += len(batch)
            return batch

    def _put(self, batch: Sequence[int], rows: Vectors) -> None:
        check_finite(rows, batch)
        with self._lock:
            if self.matrix is None:
                self.matrix = np.empty((len(self._lengths), rows.shape[1]), dtype=np.float32)
            self.matrix[np.asarray(batch)] = rows
            if self._finished is not None:
                self._finished(batch, rows)


def _attempt(worker: Worker, batch: Sequence[int], lengths: Sequence[int]) -> Vectors | None:
    try:
        return worker.rows(batch)
    except Exception as error:
        if not worker.is_out_of_memory(error):
            raise
        if len(batch) == 1:
            raise DoesNotFitError(
                f"out of memory: one text of {lengths[batch[0]]:,} tokens does not fit on the device; use another "
                "device (--device), a smaller dtype (--dtype) or a smaller model"
            ) from None
        return None
