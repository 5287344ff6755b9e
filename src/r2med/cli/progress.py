"""Show the progress of long work on stderr: bars on a terminal, or a line every few seconds in a plain log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from r2med.foundation.text.plurals import clock_time
from r2med.foundation.text.terminal_text import printable

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from r2med.foundation.engine.reporting import Progress

QUIET_SECONDS = 10.0
"""Seconds between two lines in a plain log."""

INSTANT_SECONDS = 0.5
"""Steps that took less time were read from the cache, and do not predict the next steps."""

LAST_STEPS = 3
"""Number of steps that predict the next ones. Those of an earlier system may have taken a hundred times as long."""

BAR = 16
"""Width of a bar in characters."""


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next of `total` steps by name."""
    from r2med.foundation.engine.reporting import announcing

    with shown_steps():
        yield announcing(total)


@contextmanager
def shown_steps() -> Iterator[None]:
    """Show the steps that work announces inside the block, and the progress of each."""
    from r2med.foundation.engine.reporting import StepBegun, listening

    displays: list[_OnTerminal | _InLog] = []

    def announce(step: StepBegun) -> None:
        if not step.total:
            displays.clear()
            stack.close()
            return
        if not displays:
            clock = Clock(step.total)
            is_terminal = sys.stderr.isatty()
            displays.append(_OnTerminal(stack.enter_context(_bars()), clock) if is_terminal else _InLog(clock))
        displays[0].announce(step.name)

    def report(progress: Progress) -> None:
        if displays:
            displays[0].report(progress)

    with ExitStack() as stack, listening(report, announce):
        yield


@dataclass
class Clock:
    """Counts the steps that are done and estimates the time of the remaining steps."""

    total: int
    now: Callable[[], float] = time.monotonic
    done: int = 0
    _begun: float | None = None
    _durations: list[float] = field(default_factory=list)

    def next(self) -> None:
        """Begin the next step, which ends the one before it."""
        now = self.now()
        if self._begun is not None:
            self.done += 1
            self._durations.append(now - self._begun)
        self._begun = now

    @property
    def number(self) -> int:
        """The number of the current step; 0 before the first."""
        return self.done + (self._begun is not None)

    def seconds_left(self, part: Progress | None) -> float | None:
        """Return the estimated time of all remaining steps; None if unknown. `part` is the progress of this step."""
        if self._begun is None:
            return None
        spent = self.now() - self._begun
        part_left = part.seconds_left if part is not None else None
        worked = [seconds for seconds in self._durations if seconds >= INSTANT_SECONDS]
        if part_left is None and not worked:
            return None
        usual = median(worked[-LAST_STEPS:]) if worked else 0.0
        this = max(part_left or 0.0, usual - spent)
        return this + max(0, self.total - self.done - 1) * (usual or spent + this)


class _OnTerminal:
    """Two bars: the steps, and below them the work of the current one."""

    def __init__(self, bars: Bars, clock: Clock) -> None:
        self._bars = bars
        self._clock = clock
        self._steps = bars.add_task("starting", total=clock.total, **_fields(_count(0, clock.total)))
        self._part = bars.add_task("", visible=False, **_fields(""))

    def announce(self, name: str) -> None:
        """Show the next step."""
        self._clock.next()
        self._bars.update(self._part, visible=False)
        self._show_steps(None, printable(name))

    def report(self, progress: Progress) -> None:
        """Show the progress of a step and the time left for all steps."""
        self._bars.update(
            self._part,
            visible=True,
            total=progress.total,
            completed=progress.done,
            description=progress.what,
            **_fields(_count(progress.done, progress.total), pace(progress), _left(progress.seconds_left)),
        )
        self._show_steps(progress)

    def _show_steps(self, progress: Progress | None, name: str | None = None) -> None:
        clock = self._clock
        left = _left(clock.seconds_left(progress), "about ")
        counted = _fields(_count(clock.number, clock.total), None, left)
        self._bars.update(self._steps, completed=clock.done, description=name, **counted)


class _InLog:
    """A line for each step, and one every few seconds for the work within it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_line = clock.now()

    def announce(self, name: str) -> None:
        """Print the next step."""
        self._clock.next()
        self._print(printable(name))

    def report(self, progress: Progress) -> None:
        """Print the progress of a step, if the last line is old enough."""
        if self._clock.now() - self._last_line < QUIET_SECONDS:
            return
        self._last_line = self._clock.now()
        whole = _left(self._clock.seconds_left(progress), "about ") if self._clock.total > 1 else ""
        self._print(words(progress) + (f"; all steps: {whole}" if whole else ""))

    def _print(self, line: str) -> None:
        print(f"[{self._clock.number}/{self._clock.total}] {line}", file=sys.stderr, flush=True)


def words(progress: Progress) -> str:
    """Return the progress, the speed and the time left as text."""
    parts = (f"{progress.done:,} of {progress.total:,} {progress.what}", pace(progress), _left(progress.seconds_left))
    return ", ".join(part for part in parts if part)


def pace(progress: Progress) -> str:
    """Return the speed, per second or per minute."""
    return f"{progress.rate:,.0f}/s" if progress.rate >= 1 else f"{60 * progress.rate:,.0f}/min"


def _left(seconds: float | None, about: str = "") -> str:
    if seconds is None:
        return ""
    return f"{about}{clock_time(seconds)} left"


def _count(done: int, total: int) -> str:
    return f"{done:,}/{total:,}"


def _fields(count: str, pace: str | None = None, left: str = "") -> dict[str, Any]:
    """Return the texts beside a bar. Without a pace, the time since the start is shown."""
    return {"count": count, "pace": pace, "left": left}


@contextmanager
def _bars() -> Iterator[Bars]:
    """Yield bars whose last column, the name, is shortened if the terminal is too narrow."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeElapsedColumn
    from rich.table import Column
    from rich.text import Text

    class Pace(ProgressColumn):
        def render(self, task: Task) -> Text:
            given = task.fields["pace"]
            return Text(given) if given else TimeElapsedColumn().render(task)

    def column(field: str) -> TextColumn:
        return TextColumn(f"{{task.{field}}}", markup=False, table_column=Column(no_wrap=True))

    name = TextColumn(
        "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
    )
    columns = (
        BarColumn(BAR, table_column=Column(min_width=BAR)),
        column("fields[count]"),
        Pace(table_column=Column(no_wrap=True)),
        column("fields[left]"),
        name,
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bars:
        yield bars
