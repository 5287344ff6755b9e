"""Run work on this machine's cores by threads: NumPy, SciPy and Arrow let go of the interpreter lock in their loops.

Threads rather than processes: nothing is copied, a script needs no `if __name__ == "__main__"`, Ctrl-C works.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from queue import SimpleQueue
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

MOST = 256
"""Threads that share work, whatever number is asked for."""


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

    For work of milliseconds, in which starting threads, or Python's pools of them, would count. It must not share work
    itself: those that help would wait for each other.
    """
    rest, coming, came = deque(items), threading.Lock(), 0
    ended: SimpleQueue[BaseException | None] = SimpleQueue()

    def take() -> None:
        while rest:
            try:
                item = rest.popleft()
            except IndexError:  # another was faster
                return
            work(item)

    def help_out() -> None:
        nonlocal came
        with coming:
            if not rest:
                return
            came += 1
        try:
            take()
        except BaseException as error:
            rest.clear()
            ended.put(error)
        else:
            ended.put(None)

    try:
        with contextlib.suppress(RuntimeError):  # no more threads can be started: those that are there do it
            for others in range(min(threads, len(rest), MOST) - 1):
                _helpers().ask(help_out, others)
        take()
    finally:
        with coming:  # whoever comes later finds nothing to do, and is not waited for
            rest.clear()
        errors = [error for _ in range(came) if (error := ended.get()) is not None]
    for error in errors:
        raise error


class _Helpers:
    """Threads that wait for something to do as long as the process lives."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._threads: list[threading.Thread] = []

    def ask(self, task: Callable[[], None], others: int) -> None:
        """Have a thread do a task, beside so many others."""
        if len(self._threads) <= others:
            thread = threading.Thread(target=self._serve, name="r2med", daemon=True)
            thread.start()
            self._threads.append(thread)
        self._tasks.put(task)

    def _serve(self) -> None:
        while True:
            self._tasks.get()()


@cache
def _helpers() -> _Helpers:
    return _Helpers()


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
