"""What `r2med lock` shows: the file of the lock, and the commands that keep to it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from r2med.foundation.text.plurals import counted
from r2med.foundation.text.terminal_text import printable, quoted

if TYPE_CHECKING:
    from r2med.evaluation.records.lock_file import Lock


def show_lock(made: Lock, out: str | Path) -> None:
    """Print the size of the lock and what to do next."""
    sizes = f"{counted(len(made.systems), 'system')}, {counted(len(made.datasets), 'dataset')}"
    print(
        printable(f"{out}: {sizes}, {counted(len(made.pairs), 'comparison')} by {made.measure}; digest {made.digest}")
    )
    lock = f"--lock {quoted(out)}"
    print(printable(f"then, in a folder of their own: r2med run {lock} --out locked, and"))
    print(printable(f"r2med compare {lock} --results locked"))
