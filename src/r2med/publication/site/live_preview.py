"""Keep a board up to date: make it again when a record changes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import digest

log = logging.getLogger("r2med")

SECONDS = 1.0
"""Seconds between two checks of the records."""


def state(sources: Iterable[Path]) -> str:
    """Return a digest that changes when a record or an overlay is written, replaced or removed."""
    files = [path for source in sources for path in ([source] if source.is_file() else sorted(source.rglob("*.json")))]
    return digest([[str(path), *_stamp(path)] for path in files])


def _stamp(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:  # the file was replaced at this moment
        return []
    return [status.st_mtime_ns, status.st_size]


class LiveBoard:
    """A board that is made again when its records change."""

    def __init__(self, make: Callable[[], object], folder: Path, sources: Iterable[Path]) -> None:
        self.folder = folder
        self._make = make
        self._sources = tuple(sources)
        self._making = threading.Lock()
        self.version = state(self._sources)
        make()

    def follow(self, stopped: threading.Event) -> None:
        """Check the records every second until `stopped` is set."""
        while not stopped.wait(SECONDS):
            self.refresh()

    def refresh(self) -> None:
        """Make the board again if a record changed. If this fails, warn and keep the old board."""
        with self._making:  # two threads at once would remove each other's files
            now = state(self._sources)
            if now == self.version:
                return
            try:
                self._make()
            except UserError as error:
                log.warning("the board was not updated: %s", error)
            self.version = now
