"""Run work in threads on the cores of this machine. NumPy, SciPy and Arrow release the interpreter lock in loops.

Threads are better than processes here: nothing is copied, scripts need no `if __name__ == "__main__"`, Ctrl-C works.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

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
