"""How many requests may be under way: half as many after a 429, slowly more again while all goes well."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque

from r2med.net.notices import Notices


class Throttle:
    """A limit that a provider's answers move. Whoever sends keeps to it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(most)
        self._shrunk = -math.inf
        self._free_at = -math.inf
        self.stopped = asyncio.Event()
        """Set when the run has failed: nobody need try again."""
        self.notices = Notices()

    @property
    def limit(self) -> int:
        """Return how many requests may be under way."""
        return int(self._limit)

    def limited(self, started: float, wait: float) -> None:
        """Take note of a 429; requests sent before the last one tell nothing new."""
        if started >= self._shrunk:
            self._limit = max(1.0, self._limit / 2)
            self._shrunk = time.monotonic()
        self._free_at = max(self._free_at, time.monotonic() + wait)

    def answered(self) -> None:
        """Take note of a success: a whole round of them allows one more request."""
        self._limit = min(float(self._most), self._limit + 1 / self._limit)

    async def enter(self) -> None:
        """Wait until an attempt may be made; `leave` ends it."""
        await self.open()

    def leave(self) -> None:
        """End an attempt."""

    async def open(self) -> None:
        """Wait while the provider wants none of us."""
        while (wait := self._free_at - time.monotonic()) > 0 and not self.stopped.is_set():
            await self.sleep(wait)

    async def sleep(self, seconds: float) -> None:
        """Wait, but no longer than there is something to wait for."""
        try:
            async with asyncio.timeout(seconds):
                await self.stopped.wait()
        except TimeoutError:
            pass


class Turnstile(Throttle):
    """A throttle that keeps the limit itself, attempt by attempt: one that waits to try again holds nobody up."""

    def __init__(self, most: int) -> None:
        super().__init__(most)
        self._inside = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    def answered(self) -> None:
        """Take note of a success."""
        super().answered()
        self._call()

    async def enter(self) -> None:
        """Wait for a turn, and while the provider wants none of us."""
        while self._inside >= self.limit and not self.stopped.is_set():
            turn = asyncio.get_running_loop().create_future()
            self._queue.append(turn)
            await turn
        self._inside += 1
        try:
            await self.open()
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Let the next one in."""
        self._inside -= 1
        self._call()

    def stop(self) -> None:
        """Send everybody home."""
        self.stopped.set()
        self._call()

    def _call(self) -> None:
        free = len(self._queue) if self.stopped.is_set() else self.limit - self._inside
        while free > 0 and self._queue:
            turn = self._queue.popleft()
            if not turn.done():  # cancelled by Ctrl-C
                turn.set_result(None)
                free -= 1
