"""Objects that are made once and shared by threads."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from typing import Any, TypeVar
from weakref import WeakValueDictionary

Value = TypeVar("Value")


class SharedObjects:
    """Objects by key. Any thread may use it. With a `limit`, the least recently used object is dropped first."""

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self._held: OrderedDict[Hashable, Any] = OrderedDict()
        self._turns: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()  # only the locks in use are kept
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the object of a key. `make` makes it if it is missing, and only once for all threads."""
        with self.turn(key):
            with self._guard:
                if key in self._held:
                    self._held.move_to_end(key)
                    held: Value = self._held[key]
                    return held
                # What leaves is not closed: a thread may still be working with it. It ends with its last user.
                while self.limit is not None and self._held and len(self._held) >= self.limit:
                    self._held.popitem(last=False)
            value = make()  # without the guard, so that other keys do not wait
            with self._guard:
                self._held[key] = value
            return value

    def turn(self, key: Hashable) -> AbstractContextManager[object]:
        """Return the lock of a key. Threads take it so that only one of them does the work."""
        with self._guard:
            lock: threading.RLock | None = self._turns.get(key)
            if lock is None:
                lock = self._turns[key] = threading.RLock()
            return lock

    def clear(self) -> None:
        """Drop all objects. Objects with a method `close` are closed, latest first."""
        with self._guard:
            held = list(self._held.values())
            self._held.clear()
        for value in reversed(held):
            close = getattr(value, "close", None)
            if callable(close):
                close()
