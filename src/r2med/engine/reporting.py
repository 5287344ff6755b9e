"""Progress of long work: who does the work reports, who shows it listens, and neither knows the other."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Progress:
    """How far a piece of work is."""

    what: str
    done: int
    total: int
    before: int
    """What was done already when the work started: it says nothing about the speed."""
    seconds: float

    @property
    def rate(self) -> float:
        """The items done a second."""
        return (self.done - self.before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The seconds left at this rate; None while it is not known."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


_listener: ContextVar[Callable[[Progress], None] | None] = ContextVar("r2med_progress", default=None)


@contextmanager
def listening(listener: Callable[[Progress], None]) -> Iterator[None]:
    """Call `listener` with the progress of all work that is begun inside."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def part_of(begun: int, total: int) -> Iterator[None]:
    """Report the work that is begun inside as a part of a larger one, of which `begun` of `total` items are done."""
    listener = _listener.get()
    if listener is None:
        yield
        return

    def report(part: Progress) -> None:
        done, before = (min(begun + count, total) for count in (part.done, part.before))
        listener(replace(part, done=done, before=before, total=total))

    with listening(report):
        yield


class Reporter:
    """Reports one piece of work to whoever listened when it began; threads may report parts of it."""

    def __init__(self, what: str, total: int, before: int = 0) -> None:
        self._what = what
        self._total = total
        self._before = before
        self._done = before
        self._started = time.perf_counter()
        self._listener = _listener.get()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Reporter], tuple[str, int, int]]:
        return Reporter, (self._what, self._total, self._before)  # on another machine nobody listens

    def reach(self, done: int) -> None:
        """Report that so many are done in all, if fewer were told: those that were done elsewhere."""
        if done > self._done:
            self.advance(done - self._done)

    def skip(self, count: int) -> None:
        """Count items that turn out to be done already: they say nothing about the speed."""
        with self._lock:
            self._before += count
            self._done += count

    def advance(self, count: int) -> None:
        """Report that so many more are done."""
        with self._lock:
            self._done += count
            if self._listener is not None:
                seconds = time.perf_counter() - self._started
                self._listener(Progress(self._what, self._done, self._total, self._before, seconds))
