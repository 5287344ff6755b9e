"""The threads in which questions are answered: bounded, each with a deadline, stopped when nobody waits any more."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from r2med.engine.reporting import Progress, listening
from r2med.server.refusals import unavailable

T = TypeVar("T")


class StoppedError(Exception):
    """Work that nobody waits for any more."""


class AnswerPool:
    """Answers questions that may take long, as many at once as there are threads; one more is refused."""

    def __init__(self, threads: int) -> None:
        self._most = threads
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="answer")
        self._running: dict[asyncio.Future[Any], asyncio.Future[None]] = {}
        """The work that is under way, and for each what its client is told by that the server leaves."""
        self._closed = False

    @property
    def is_busy(self) -> bool:
        """Whether a question is being answered now."""
        return bool(self._running)

    async def run(self, work: Callable[[], T], seconds: float) -> T:
        """Return what `work` returns. Raises TimeoutError after the deadline, HTTPError if there is no room.

        Work that is late, or whose client is gone, ends with its next step: the next answer of an LLM is its last.
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
        """Refuse all questions that come; those that are being answered go on."""
        self._closed = True

    def abandon(self) -> None:
        """Refuse those that are being answered, too."""
        for leaving in self._running.values():
            if not leaving.done():
                leaving.set_result(None)

    def _forget(self, future: asyncio.Future[Any]) -> None:
        self._running.pop(future, None)
        if not future.cancelled():
            future.exception()  # nobody may be left to look at it


def _until(stopped: threading.Event, work: Callable[[], T]) -> T:
    """Do work that tells of its progress, until it is stopped."""

    def check(progress: Progress) -> None:
        if stopped.is_set():
            raise StoppedError

    with listening(check):
        try:
            return work()
        except (SystemExit, KeyboardInterrupt) as error:  # of a user's model: it must not end the server
            raise RuntimeError(f"it ended with {error!r}") from error
