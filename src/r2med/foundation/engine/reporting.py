"""Report the progress of long work to a listener, so that work and display do not depend on each other."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple


@dataclass(frozen=True)
class Progress:
    """The progress of a piece of work."""

    what: str
    done: int
    total: int
    before: int
    """Number of items that were done before the work started. They do not count for the speed."""
    seconds: float

    @property
    def rate(self) -> float:
        """The number of items per second."""
        return (self.done - self.before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The remaining seconds at this rate; None before the first item is done, and after the last.

        After the last, some items are asked about again.
        """
        return (self.total - self.done) / self.rate if self.rate > 0 and self.done < self.total else None


@dataclass(frozen=True)
class StepBegun:
    """The next of `total` steps of a call begins. A total of 0 means that all steps are done."""

    name: str
    total: int


class _Listeners(NamedTuple):
    """The functions that a block has for what happens inside it."""

    report: Callable[[Progress], None] | None = None
    announce: Callable[[StepBegun], None] | None = None


_listeners: ContextVar[_Listeners] = ContextVar("r2med_progress", default=_Listeners())  # noqa: B039 - a tuple
"""The listeners of the innermost block. Threads do not inherit them, so that they are taken before threads start."""


def announcing(total: int) -> Callable[[str], None]:
    """Return a function that announces the next of `total` steps by name, from any thread."""
    listener = _listeners.get().announce
    return lambda name: listener(StepBegun(name, total)) if listener is not None else None


def steps_ended() -> None:
    """Say that all steps are done. What comes now, such as a server, is no step."""
    announcing(0)("")


@contextmanager
def listening(
    report: Callable[[Progress], None], announce: Callable[[StepBegun], None] | None = None
) -> Iterator[None]:
    """Call `report` with the progress of all work that starts inside the block, and `announce` with its steps."""
    token = _listeners.set(_Listeners(report, announce or _listeners.get().announce))
    try:
        yield
    finally:
        _listeners.reset(token)


@contextmanager
def part_of(begun: int, total: int) -> Iterator[None]:
    """Report work that starts inside the block as part of larger work, with `begun` of `total` items done."""
    listener = _listeners.get().report
    if listener is None:
        yield
        return

    def report(part: Progress) -> None:
        done, before = (min(begun + count, total) for count in (part.done, part.before))
        listener(replace(part, done=done, before=before, total=total))

    with listening(report):
        yield


class Reporter:
    """Reports one piece of work to the listener that was set when it started. Threads may report parts of it."""

    def __init__(self, what: str, total: int, before: int = 0) -> None:
        self._what = what
        self._total = total
        self._before = before
        self._done = before
        self._started = time.perf_counter()
        self._listener = _listeners.get().report
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Reporter], tuple[str, int, int]]:
        return Reporter, (self._what, self._total, self._before)  # there is no listener on another machine

    def reach(self, done: int) -> None:
        """Report that `done` items are done in total, if fewer were reported. The others were done elsewhere."""
        if done > self._done:
            self.advance(done - self._done)

    def skip(self, count: int) -> None:
        """Count items that were done already. They do not count for the speed."""
        with self._lock:
            self._before += count
            self._done += count

    def advance(self, count: int) -> None:
        """Report that `count` more items are done."""
        with self._lock:
            self._done += count
            if self._listener is not None:
                seconds = time.perf_counter() - self._started
                self._listener(Progress(self._what, self._done, self._total, self._before, seconds))


UPDATE_SECONDS = 0.5
"""Seconds between two updates of the line."""


@contextmanager
def notebook_progress() -> Iterator[None]:
    """Show steps and their progress in a notebook. Outside a notebook this does nothing."""
    kernel = sys.modules.get("ipykernel.kernelapp")  # other programs import parts of it and are not notebooks
    if kernel is None or not kernel.IPKernelApp.initialized():
        yield
        return
    from IPython.display import HTML, display

    line = display(HTML(""), display_id=True)
    name, shown = "", 0.0

    def announce(step: StepBegun) -> None:
        nonlocal name
        name = step.name
        line.update(HTML(escape(name)))

    def report(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown >= UPDATE_SECONDS:
            shown = time.monotonic()
            line.update(HTML(escape(f"{name}: {progress.done:,} of {progress.total:,} {progress.what}")))

    with listening(report, announce):
        yield
    line.update(HTML(""))
