"""Progress of long work: whoever does it reports, whoever shows it listens; neither knows the other."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is. `before` was done already when it started, so it says nothing of the speed."""

    what: str
    done: int
    total: int
    before: int
    seconds: float

    @property
    def rate(self) -> float:
        """Items a second."""
        return (self.done - self.before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """Seconds to go at this rate; None while it is not known."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


_listener: ContextVar[Callable[[Progress], None] | None] = ContextVar("r2med_progress", default=None)


@contextmanager
def listening(listener: Callable[[Progress], None]) -> Iterator[None]:
    """Show the progress of everything done inside to `listener`."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class Reporter:
    """Reports one piece of work to whoever listens, if anybody does."""

    def __init__(self, what: str, total: int, before: int = 0) -> None:
        self._what, self._total, self._before = what, total, before
        self._done = before
        self._started = time.perf_counter()

    def advance(self, count: int) -> None:
        """Tell that so many more are done."""
        self._done += count
        if listener := _listener.get():
            seconds = time.perf_counter() - self._started
            listener(Progress(self._what, self._done, self._total, self._before, seconds))
