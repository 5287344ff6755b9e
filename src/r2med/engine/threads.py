"""Run work on this machine's cores by threads: NumPy, SciPy and Arrow let go of the interpreter lock in their loops.

Threads rather than processes: nothing is copied, a script needs no `if __name__ == "__main__"`, Ctrl-C works.
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
    """Return how many cores this process may use; R2MED_THREADS overrides."""
    wanted = os.environ.get("R2MED_THREADS", "")
    if wanted.isdecimal():
        return max(1, int(wanted[:6]))
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_threads(
    work: Callable[[Item], Result], items: Iterable[Item], pool: ThreadPoolExecutor | None = None
) -> Iterator[Result]:
    """Yield results in the order of items; only a few are in flight, so memory does not grow with the input.

    Starting threads takes a millisecond or two: work that takes no longer brings a pool of its own.
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
