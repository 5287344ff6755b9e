"""Answer questions in a limited number of threads. Each has a deadline, and stops when its client has gone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from r2med.foundation.engine.reporting import Progress, listening
from r2med.server.refusals import unavailable

T = TypeVar("T")


class StoppedError(Exception):
    """Stops work whose client has gone or whose deadline has passed."""


class AnswerPool:
    """Answers slow questions, one in each thread. If all threads are busy, a question is refused."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self._running: dict[asyncio.Future[Any], asyncio.Future[None]] = {}
        """Running work -> a future that is set when the server stops."""
        self._closed = False

    @property
    def is_busy(self) -> bool:
        """True if a question is being answered now."""
        return bool(self._running)

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return the result of `work`. Raises TimeoutError after the deadline, and HTTPError if all threads are busy.

        Work that is late or whose client has gone stops at its next step, for example after the next LLM answer.
        """
        if self._closed:
            raise unavailable("the server is stopping")
        if len(self._running) >= self._most:
            raise unavailable(f"{self._most} questions are being answered already: try again in a moment")
        stopped = threading.Event()
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._threads, _until, stopped, work)
        leaving = self._running[future] = loop.create_future()
        future.add_done_callback(self._forget)
        try:
            await asyncio.wait({future, leaving}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if future.done():
                return future.result()
            if leaving.done():
                raise unavailable("the server is stopping")
            raise TimeoutError
        finally:
            stopped.set()

    def close(self) -> None:
        """Refuse new questions. Running ones continue."""
        self._closed = True

    def abandon(self) -> None:
        """Stop waiting for running questions. Their clients get 503."""
        for leaving in self._running.values():
            if not leaving.done():
                leaving.set_result(None)

    def _forget(self, future: asyncio.Future[Any]) -> None:
        self._running.pop(future, None)
        if not future.cancelled():
            future.exception()  # mark the error as read, because the client may have gone


def _until(stopped: threading.Event, work: Callable[[], T]) -> T:
    """Do work that reports its progress, until it is stopped."""

    def check(progress: Progress) -> None:
        if stopped.is_set():
            raise StoppedError

    with listening(check):
        try:
            return work()
        except (SystemExit, KeyboardInterrupt) as error:  # a user's model must not end the server
            raise RuntimeError(f"it ended with {error!r}") from error
