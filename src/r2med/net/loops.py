"""Running a coroutine to its end from anywhere: also inside a notebook's loop, and stopped by Ctrl-C at once."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def run_apart(work: Coroutine[Any, Any, T]) -> T:
    """Return what the coroutine returns, run on a loop in a thread of its own.

    Always a thread: a running loop cannot be entered again, and one path is easier to get right than two.
    """
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def body() -> None:
        try:
            loop.run_until_complete(asyncio.wait([task]))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            loop.close()  # unlike asyncio.run, without waiting for a thread that is looking up a host

    thread = threading.Thread(target=body, name="r2med-net", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.2)  # a wait without end cannot be interrupted on Windows
    except BaseException:
        with contextlib.suppress(RuntimeError):  # it has just ended
            loop.call_soon_threadsafe(task.cancel)
        thread.join(5)
        raise
    return task.result()
