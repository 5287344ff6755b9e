"""Run work in threads on the cores of this machine. NumPy, SciPy and Arrow release the interpreter lock in loops.

Threads are better than processes here: nothing is copied, scripts need no `if __name__ == "__main__"`, Ctrl-C works.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of cores that this process may use. R2MED_THREADS overrides it."""
    wanted = os.environ.get("R2MED_THREADS", "")
    if wanted.isdecimal():
        return max(1, int(wanted[:6]))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(
    work: Callable[[Item], Result], items: Iterable[Item], pool: ThreadPoolExecutor | None = None
) -> Iterator[Result]:
    """Yield results in the order of items. Only a few items are processed at a time, to limit the memory.

    Starting threads takes one or two milliseconds. Very short work should bring its own pool.
    """
    workers = cores()
    with contextlib.nullcontext(pool) if pool else ThreadPoolExecutor(workers) as threads:
        pending: deque[Future[Result]] = deque()
        try:
            for item in items:
                pending.append(threads.submit(work, item))
                if len(pending) > 2 * workers:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()


def share(work: Callable[[Item], Result], items: Sequence[Item], pool: ThreadPoolExecutor) -> list[Result]:
    """Return the results in the order of items. Each thread of the pool takes the next item when it is free."""
    results: list[Any] = [None] * len(items)
    turn = itertools.count()

    def run(_: int) -> None:
        while (number := next(turn)) < len(items):
            results[number] = work(items[number])

    threads = min(cores(), len(items))
    if threads < 2:
        run(0)
    else:
        list(pool.map(run, range(threads)))
    return results


class _BlasLimit:
    """The limit of the BLAS to one thread, while at least one block is open."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open = 0
        self._limit: Any = None

    def begin(self) -> None:
        """Set the limit for the first block."""
        with self._lock:
            if not self._open:
                self._limit = _libraries().limit(limits=1, user_api="blas")
            self._open += 1

    def end(self) -> None:
        """Remove the limit after the last block."""
        with self._lock:
            self._open -= 1
            if not self._open:
                self._limit.restore_original_limits()


_blas_limit = _BlasLimit()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let each matrix product run in the thread that asked for it.

    Threads of ours then multiply side by side. The threads of the BLAS would spin for a while after each product, and
    take the cores from the work that follows it. Blocks of several threads may overlap.
    """
    _blas_limit.begin()
    try:
        yield
    finally:
        _blas_limit.end()


@cache
def _libraries() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
