"""Limit the number of requests at once: half as many after a 429, then slowly more again after successes.

Requests that wait to try again are reported in one line every few seconds, however many they are.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

log = logging.getLogger("r2med")

SHORT_SECONDS = 0.5
"""Waits that are shorter are not reported."""
NOTICE_SECONDS = 10.0
"""Seconds between two lines about waiting requests."""


class AdaptiveLimiter:
    """A limit on requests at once that adapts to the answers of a provider. Use it inside one event loop.

    A request holds a slot only during an attempt, so a request that waits for a retry does not block others. (anyio's
    CapacityLimiter can neither pause nor stop all waiting requests.)
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._shrunk = -math.inf
        self._free_at = -math.inf
        self._inside = 0
        self._queue: deque[asyncio.Future[None]] = deque()
        self.stopped = asyncio.Event()
        """Set when the run has failed. No request is retried then."""
        self._reported = -math.inf

    @property
    def limit(self) -> int:
        """Return the maximum number of requests at once."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Wait for a free slot, and until the provider accepts requests again. Hold the slot inside the block."""
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
        """Record a 429, and send nothing for `wait` seconds. Requests sent before the last 429 do not count."""
        if started >= self._shrunk:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + wait)

    def answered(self) -> None:
        """Record a success. A full round of successes allows one more request at once."""
        self._limit = min(float(self._most), self._limit + 1 / self._limit)
        self._wake()

    def stop(self) -> None:
        """Release all waiting requests. Nothing more is sent."""
        self.stopped.set()
        self._wake()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`, or until the run has failed."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopped.wait()
        except TimeoutError:
            pass

    async def wait(self, reason: str, seconds: float, attempt: int, attempts: int) -> None:
        """Wait to try a request again, after `attempt` of `attempts` attempts. One line reports all that wait now."""
        now = time.monotonic()
        is_due = seconds >= SHORT_SECONDS and now >= self._reported + NOTICE_SECONDS
        if is_due:
            self._reported = now
        level = logging.WARNING if is_due else logging.DEBUG
        log.log(level, "%s: trying again in %.1f s (%d of %d)", reason, seconds, attempt, attempts)
        await self.sleep(seconds)

    def _wake(self) -> None:
        free = len(self._queue) if self.stopped.is_set() else self.limit - self._inside
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():  # cancelled by Ctrl-C
                turn.set_result(None)
                free -= 1
