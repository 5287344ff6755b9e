"""Telling that requests wait to be tried again: a line every few seconds, however many they are."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

log = logging.getLogger("r2med")

GATHER = 0.5
"""Seconds before a line is written: what passes sooner is not worth one, and others that fail alike join it."""
EVERY = 10.0
"""Seconds between two lines."""


@dataclass(eq=False, frozen=True)
class _Wait:
    reason: str
    until: float
    attempt: int
    attempts: int


class Notices:
    """The waits of one run; used inside its event loop."""

    def __init__(self) -> None:
        self._waits: dict[_Wait, None] = {}
        self._told = float("-inf")
        self._next: asyncio.TimerHandle | None = None

    @contextmanager
    def waiting(self, reason: str, seconds: float, attempt: int, attempts: int) -> Iterator[None]:
        """Count a request as waiting, after so many attempts of so many, while the context lasts."""
        log.debug("%s: trying again in %.1f s (%d of %d)", reason, seconds, attempt, attempts)
        loop = asyncio.get_running_loop()
        wait = _Wait(reason, loop.time() + seconds, attempt, attempts)
        self._waits[wait] = None
        if self._next is None:
            self._next = loop.call_at(max(loop.time() + GATHER, self._told + EVERY), self._tell, loop)
        try:
            yield
        finally:
            del self._waits[wait]
            if not self._waits and self._next is not None:
                self._next.cancel()
                self._next = None

    def _tell(self, loop: asyncio.AbstractEventLoop) -> None:
        self._next, self._told = None, loop.time()
        first = min(self._waits, key=lambda wait: wait.until)
        after = max(0.0, first.until - loop.time())
        if len(self._waits) == 1:
            log.warning("%s: trying again in %.1f s (%d of %d)", first.reason, after, first.attempt, first.attempts)
        else:
            log.warning("%s: %d requests wait to try again, the first in %.1f s", first.reason, len(self._waits), after)
