"""LiveStore: a store for questions that come one by one, of which nothing is to stay."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from r2med.store.artefacts import Store

Opened = TypeVar("Opened")


class LiveStore(Store):
    """What belongs to a corpus is made and kept as ever; what belongs to a question ends with this process.

    Any thread may use it. It also holds what is opened once for all questions, such as the searcher of an index.
    """

    def __init__(self, root: Path | str) -> None:
        super().__init__(root)
        self._opened: dict[str, Any] = {}
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()  # as many as are held, however many keys
        self._guard = threading.Lock()

    @classmethod
    def of(cls, store: Store) -> LiveStore:
        """Return the live store over another one; one that is live already is returned as it is."""
        return store if isinstance(store, cls) else cls(store.root)

    @cached_property
    def answers(self) -> Path:
        """A folder of this process's own: the same question is asked once, and nobody finds it later."""
        return self.scratch()

    def close(self) -> None:
        """Remove what LLMs answered; the end of the process does it, too, unless it is killed."""
        shutil.rmtree(self.answers, ignore_errors=True)

    def turn(self, key: str) -> threading.Lock:
        """Return the lock of a key, for work that is better done once than twice at a time."""
        with self._guard:
            lock: threading.Lock | None = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = threading.Lock()
            return lock

    def opened(self, key: str, open: Callable[[], Opened]) -> Opened:
        """Return what `open` returned for a key when it was first wanted."""
        with self.turn(key):
            if key not in self._opened:
                self._opened[key] = open()
            opened: Opened = self._opened[key]
            return opened
