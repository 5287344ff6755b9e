"""Threads that wait for work outside the interpreter, and begin it together.

Python's own threads would be given the interpreter's lock one after the other, which takes sixteen of them as long as a
tenth of a search.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from functools import cache
from typing import Any

import numpy as np

from r2med.retrieve.dense.exact.arrays import Positions
from r2med.retrieve.dense.exact.jit import wait
from r2med.retrieve.dense.exact.kernels import DONE, UNDONE, Choosing, do_step
from r2med.retrieve.dense.exact.product_kernels import Product
from r2med.retrieve.dense.exact.team_kernels import ALL, CELL, CONDITION, DESK, Desk, Posix, ask, close, serve, tell

CALL = 1 << 33
"""Multiplications after which a call returns: Ctrl-C waits for it."""

Step = tuple[Product, Choosing]


class Team:
    """Threads that do one step at a time. They end when nobody has the team any more."""

    def __init__(self) -> None:
        self._cells: list[Positions] = []
        self._desk = Desk(*(np.zeros(size, np.int64) for size in (DESK, CELL, CELL)))
        self._held: list[Any] = []
        """What threads may read or write: they have it, too, as long as they run."""
        weakref.finalize(self, _dismiss, self._cells, os.getpid()).atexit = False

    def do(self, step: Step, threads: int, held: object) -> int:
        """Do a step on so many threads, this one among them; return what is done: all, or what is not odd.

        `held` is kept as long as another thread may use it.
        """
        (product, work), cells = step, self._addresses(threads - 1, step)
        while self._desk.inside[0]:  # one had no core since the last step
            time.sleep(0)
        self._held[:] = [step, held]
        most = max(1, CALL // max(1, int(product.queries.size * product.pieces.counts.max(initial=1))))
        try:
            ask(self._desk, cells, _posix(), product, work)
            while (done := do_step(product, work, most)) == UNDONE:
                time.sleep(0)  # whoever is not ready may have no core
            while done == DONE and not wait(work.parts_done, len(work.ends)):
                time.sleep(0)
        finally:
            if close(self._desk, product.pieces_taken, work.parts_taken):
                self._held.clear()
        return done

    def _addresses(self, count: int, step: Step) -> Positions:
        """Return where the cells of so many threads are, or of fewer if no more can be started."""
        with contextlib.suppress(RuntimeError):
            while len(self._cells) < count:
                cell = _cell()
                arguments = self._desk, cell, _posix(), *_without_content(step)
                threading.Thread(target=_serve, args=(arguments, self._held), name="r2med team", daemon=True).start()
                self._cells.append(cell)
        return np.array([cell.ctypes.data for cell in self._cells[:count]], np.int64)


def _serve(arguments: tuple[Any, ...], held: object) -> None:
    serve(*arguments)


def _dismiss(cells: list[Positions], process: int) -> None:
    """Have the threads of some cells end, unless they did not come along into this process."""
    for cell in cells if process == os.getpid() else ():
        tell(cell.ctypes.data, _posix(), -ALL)


def compile_team(*step: Any) -> None:
    """Compile what threads run."""
    desk, cell = Desk(*(np.zeros(1, np.int64) for _ in range(3))), _cell()
    _dismiss([cell], os.getpid())
    serve(desk, cell, _posix(), *_without_content(step))
    close(desk, np.zeros(1, np.int64), np.zeros(1, np.int64))


def _without_content(value: Any) -> Any:
    """Return a value of the same types, with empty arrays."""
    if isinstance(value, tuple):
        parts = map(_without_content, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return np.zeros((0,) * value.ndim, value.dtype) if isinstance(value, np.ndarray) else value


def _cell() -> Positions:
    """Return a cell with a mutex and a condition of the system."""
    cell = np.zeros(CELL, np.int64)
    system = ctypes.CDLL(None)
    for function, at in (system.pthread_mutex_init, 0), (system.pthread_cond_init, CONDITION):
        if function(ctypes.c_void_p(cell[at:].ctypes.data), None):
            raise MemoryError("the system has no more mutexes")
    return cell


@cache
def _posix() -> Posix:
    system = ctypes.CDLL(None)
    names = ("mutex_lock", "mutex_unlock", "cond_wait", "cond_signal")
    addresses = (ctypes.cast(getattr(system, f"pthread_{name}"), ctypes.c_void_p).value for name in names)
    return Posix(*(address or 0 for address in addresses))
