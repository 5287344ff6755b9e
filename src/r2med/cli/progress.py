"""Progress of long work: a bar on a terminal, one line a step in a plain log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def steps(total: int) -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next step; it goes to stderr, so that results can be piped."""
    if not sys.stderr.isatty():
        done = 0

        def announce(what: str) -> None:
            nonlocal done
            done += 1
            print(f"[{done}/{total}] {what}", file=sys.stderr, flush=True)

        yield announce
        return

    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=total)
        begun = False

        def advance(what: str) -> None:
            nonlocal begun
            progress.update(task, advance=int(begun), description=escape(what))
            begun = True

        yield advance
