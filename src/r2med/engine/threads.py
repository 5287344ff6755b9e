"""Run work on this machine's cores by threads: NumPy, SciPy and Arrow let go of the interpreter lock in their loops.

Threads rather than processes: nothing is copied, a script needs no `if __name__ == "__main__"`, Ctrl-C works.
"""

from __future__ import annotations

import contextlib
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
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


def share(work: Callable[[Item], object], items: Iterable[Item], threads: int) -> None:
    """Do work on all items, in no order, on this thread and on others that are kept for such work.

    For work of milliseconds, in which starting threads would count. It must not share work itself.
    """
    rest = deque(items)

    def take() -> None:
        while True:
            try:
                item = rest.popleft()
            except IndexError:
                return
            work(item)

    helpers = [_helpers(threads - 1).submit(take) for _ in range(min(threads, len(rest)) - 1)]
    try:
        take()
    finally:
        rest.clear()
        wait(helpers)
    for helper in helpers:
        helper.result()


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, thread_name_prefix="r2med")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # threads do not come along


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
