"""Keep a board up to date while records are made: it is made again when one of them changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from r2med.core.errors import UserError
from r2med.store import digest

log = logging.getLogger("r2med")

SECONDS = 1.0
"""Between two looks at the records."""


def state(sources: Iterable[Path]) -> str:
    """Return what changes whenever a record is written, replaced or removed."""
    files = [path for source in sources for path in ([source] if source.is_file() else sorted(source.rglob("*.json")))]
    return digest([[str(path), *_stamp(path)] for path in files])


def _stamp(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:  # replaced between the two looks
        return []
    return [status.st_mtime_ns, status.st_size]


class Preview:
    """A board that is made again when its records change."""

    def __init__(self, make: Callable[[], object], folder: Path, sources: Iterable[Path]) -> None:
        self.folder = folder
        self._make = make
        self._sources = tuple(sources)
        self.version = state(self._sources)
        make()

    def follow(self, stopped: threading.Event) -> None:
        """Follow the records until `stopped` is set."""
        while not stopped.wait(SECONDS):
            self.refresh()

    def refresh(self) -> None:
        """Make the board again if a record changed; where that cannot be done, say why and leave it as it was."""
        now = state(self._sources)
        if now == self.version:
            return
        try:
            self._make()
        except UserError as error:
            log.warning("the board stays as it was: %s", error)
        self.version = now
