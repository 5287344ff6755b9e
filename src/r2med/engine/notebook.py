"""Show progress in a notebook as one line below the cell, which is updated during the work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from r2med.engine.reporting import Progress, listening

UPDATE_SECONDS = 0.5
"""Seconds between two updates of the line."""


@contextmanager
def notebook_progress() -> Iterator[Callable[[str], None]]:
    """Yield a function that announces the next step by name. Outside a notebook it does nothing."""
    kernel = sys.modules.get("ipykernel.kernelapp")  # other programs import parts of it and are not notebooks
    if kernel is None or not kernel.IPKernelApp.initialized():
        yield lambda step: None
        return
    from IPython.display import HTML, display

    line = display(HTML(""), display_id=True)
    step, shown = "", 0.0

    def announce(name: str) -> None:
        nonlocal step
        step = name
        line.update(HTML(escape(name)))

    def report(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown >= UPDATE_SECONDS:
            shown = time.monotonic()
            line.update(HTML(escape(f"{step}: {progress.done:,} of {progress.total:,} {progress.what}")))

    with listening(report):
        yield announce
    line.update(HTML(""))
