"""Progress of long work: a bar on a terminal, now and then a line in a plain log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from r2med.engine.progress import Progress

QUIET_SECONDS = 10.0
"""How often a plain log is told about work that goes on."""


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next step; it goes to stderr, so that results can be piped."""
    from r2med.engine.progress import listening

    if sys.stderr.isatty():
        with _bar(total) as (announce, show), listening(show):
            yield announce
        return
    done, told = 0, time.monotonic()

    def announce_line(what: str) -> None:
        nonlocal done
        done += 1
        print(f"[{done}/{total}] {what}", file=sys.stderr, flush=True)

    def show_line(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= QUIET_SECONDS:
            told = time.monotonic()
            print(f"[{done}/{total}] {words(progress)}", file=sys.stderr, flush=True)

    with listening(show_line):
        yield announce_line


@contextmanager
def _bar(total: int) -> Iterator[tuple[Callable[[str], None], Callable[[Progress], None]]]:
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("starting", total=total)
        current, begun = "", False

        def announce(what: str) -> None:
            nonlocal current, begun
            current = what
            bars.update(task, advance=int(begun), description=escape(what))
            begun = True

        def show(progress: Progress) -> None:
            bars.update(task, description=escape(f"{current}: {words(progress)}"))

        yield announce, show


def words(progress: Progress) -> str:
    """Return how far work is, how fast it goes, and how long it will take; slow work by the minute."""
    left = progress.seconds_left
    to_go = "" if left is None else f", {int(left // 60)}:{int(left % 60):02d} to go"
    pace = f"{progress.rate:,.0f}/s" if progress.rate >= 1 else f"{60 * progress.rate:,.0f}/min"
    return f"{progress.done:,} of {progress.total:,} {progress.what}, {pace}{to_go}"
