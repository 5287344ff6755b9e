"""LiveStore: a store for single questions, which leaves nothing of a question on the disk."""

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
    """A store that keeps the artefacts of a corpus. Data of a question are removed when this process ends.

    Any thread may use it. It also holds objects that are opened once for all questions, such as the searcher of an
    index.
    """

    def __init__(self, root: Path | str) -> None:
        super().__init__(root)
        self._opened: dict[str, Any] = {}
        self._locks: WeakValueDictionary[str, Any] = WeakValueDictionary()  # only the locks in use
        self._guard = threading.Lock()

    @classmethod
    def of(cls, store: Store) -> LiveStore:
        """Return a live store in the folder of another store. A live store is returned unchanged."""
        return store if isinstance(store, cls) else cls(store.root)

    @cached_property
    def answers(self) -> Path:
        """The folder of LLM answers, which belongs to this process. No later process can read it."""
        return self.scratch()

    def close(self) -> None:
        """Remove the answers of LLMs. This also happens at the end of the process, unless it is killed."""
        shutil.rmtree(self.answers, ignore_errors=True)

    def turn(self, key: str) -> threading.Lock:
        """Return the lock of a key. Threads take it so that only one of them does the work."""
        with self._guard:
            lock: threading.Lock | None = self._locks.get(key)
            if lock is None:
                lock = self._locks[key] = threading.Lock()
            return lock

    def opened(self, key: str, open: Callable[[], Opened]) -> Opened:
        """Return the object of a key. It is opened by `open` when it is first needed."""
        with self.turn(key):
            if key not in self._opened:
                self._opened[key] = open()
            opened: Opened = self._opened[key]
            return opened
