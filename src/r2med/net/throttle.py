"""How many requests may be under way: half as many after a 429, slowly more again while all goes well.

Whatever waits is told: a line every few seconds, however many requests wait.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass

log = logging.getLogger("r2med")

GATHER = 0.5
"""Seconds before a line is written: what passes sooner is not worth one, and others that fail alike join it."""
EVERY = 10.0
"""Seconds between two lines."""


class AdaptiveLimiter:
    """A limit on requests at once that a provider's answers move; used inside one event loop.

    A request holds a slot for each attempt only: one that waits to try again holds nobody up. (anyio's CapacityLimiter
    neither closes for a while nor sends everybody home.)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._shrunk = -math.inf
        self._free_at = -math.inf
        self._inside = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self.stopped = asyncio.Event()
        """Set when the run has failed: nobody need try again."""
        self.notices = Notices()

    @property
    def limit(self) -> int:
        """Return how many requests may be under way."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot, and until the provider takes requests again; hold the slot meanwhile."""
        while self._inside >= self.limit and not self.stopped.is_set():
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            await turn
        self._inside += 1
        try:
            while (wait := self._free_at - time.monotonic()) > 0 and not self.stopped.is_set():
                await self.sleep(wait)
            yield
        finally:
            self._inside -= 1
            self._wake()

    def limited(self, started: float, wait: float) -> None:
        """Take note of a 429, and send nothing for so many seconds; requests sent before the last one tell nothing."""
        if started >= self._shrunk:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + wait)

    def answered(self) -> None:
        """Take note of a success: a whole round of them allows one more request."""
        self._limit = min(float(self._most), self._limit + 1 / self._limit)
        self._wake()

    def stop(self) -> None:
        """Let everybody go: nothing more is to be sent."""
        self.stopped.set()
        self._wake()

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds, or until the run has failed."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopped.wait()
        except TimeoutError:
            pass

    def _wake(self) -> None:
        free = len(self._queue) if self.stopped.is_set() else self.limit - self._inside
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():  # cancelled by Ctrl-C
                turn.set_result(None)
                free -= 1


@dataclass(eq=False, frozen=True)
class _Wait:
    reason: str
    until: float
    attempt: int
    attempts: int


class Notices:
    """The requests of one run that wait to be tried again; used inside its event loop."""

    def __init__(self) -> None:
        self._waits: dict[_Wait, None] = {}
        self._written = -math.inf
        self._next: asyncio.TimerHandle | None = None

    @contextmanager
    def waiting(self, reason: str, seconds: float, attempt: int, attempts: int) -> Iterator[None]:
        """Count a request as waiting, after so many attempts of so many, while the context lasts."""
        log.debug("%s: trying again in %.1f s (%d of %d)", reason, seconds, attempt, attempts)
        loop = asyncio.get_running_loop()
        wait = _Wait(reason, loop.time() + seconds, attempt, attempts)
        self._waits[wait] = None
        if self._next is None:
            self._next = loop.call_at(max(loop.time() + GATHER, self._written + EVERY), self._write, loop)
        try:
            yield
        finally:
            del self._waits[wait]
            if not self._waits and self._next is not None:
                self._next.cancel()
                self._next = None

    def _write(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next = None
        self._written = loop.time()
        first = min(self._waits, key=lambda wait: wait.until)
        after = max(0.0, first.until - loop.time())
        if len(self._waits) == 1:
            log.warning("%s: trying again in %.1f s (%d of %d)", first.reason, after, first.attempt, first.attempts)
        else:
            log.warning("%s: %d requests wait to try again, the first in %.1f s", first.reason, len(self._waits), after)
