"""One thread that works for an event loop. A daemon: a search that does not end must not keep the process alive."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class WorkThread:
    """Runs one piece of work at a time, in the order they come; starts with the first.

    Not a ThreadPoolExecutor: Python waits for the threads of those before it exits, however long that takes.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, or raise what it raises."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def settle(set_: Callable[[Any], None], value: Any) -> None:
            if not done.done():  # nobody waits for it any more
                set_(value)

        def step() -> None:
            outcome: tuple[Callable[[Any], None], Any]
            try:
                outcome = done.set_result, work()
            except BaseException as error:  # a model that calls sys.exit() must not end the only thread there is
                plain = isinstance(error, Exception) and not isinstance(error, StopIteration)  # no future takes that
                outcome = done.set_exception, error if plain else RuntimeError(repr(error))
            with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
                loop.call_soon_threadsafe(settle, *outcome)

        self._work.put(step)
        return await done

    def _serve(self) -> None:
        while True:
            self._work.get()()
