"""Threads that wait for work outside the interpreter, and begin it together.

Threads that wait in Python are given the interpreter's lock one after the other, which takes sixteen of them as long as
a tenth of a search.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from r2med.engine.threads import MOST
from r2med.retrieve.dense.exact.arrays import Positions
from r2med.retrieve.dense.exact.choosing_kernels import Choosing
from r2med.retrieve.dense.exact.instructions import ROOM
from r2med.retrieve.dense.exact.product_kernels import Product
from r2med.retrieve.dense.exact.team_kernels import (
    ALL,
    CELL,
    CONDITION,
    DONE,
    UNDONE,
    Desk,
    ask,
    close,
    lead,
    serve,
    tell,
)

CALL = 1 << 33
"""Multiplications after which a call returns: Ctrl-C waits for it."""

_idle: list[Team] = []
"""Teams that have nothing to do: as many as there were searches at a time."""
_example: list[Any] = []
"""A product and what is to be chosen, with nothing in them: threads know their types from it."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads do not come along


def multiply_and_choose(product: Product, make_work: Callable[[], Choosing], threads: int, held: object) -> bool:
    """Do both on so many threads, this one among them; return False if nothing was chosen, as scores must be checked.

    What is to be chosen is made while others multiply. `held` is kept as long as another thread may use it.
    """
    try:
        team = _idle.pop()
    except IndexError:  # others have them
        team = Team()
    return team.do(product, make_work, threads, held)


class Team:
    """Threads that do one step at a time. They end when nobody has the team any more."""

    def __init__(self) -> None:
        self._cells: list[Positions] = []
        self._addresses = np.zeros(0, np.int64)
        self._desk = _desk()
        self._held: list[Any] = []
        """What threads may read or write: they have it, too, as long as they run."""
        weakref.finalize(self, _dismiss, self._cells, os.getpid()).atexit = False

    def do(self, product: Product, make_work: Callable[[], Choosing], threads: int, held: object) -> bool:
        """Multiply and choose; if all threads are gone in time, the team is idle after that."""
        self._hire(min(threads, MOST) - 1)
        most = max(1, CALL // max(1, int(product.queries.size * product.pieces.counts.max(initial=1))))
        parts_taken = np.zeros(1, np.int64)
        self._held[:] = [product, held]
        ask(self._desk, self._addresses[: threads - 1], product)
        try:
            work = make_work()
            self._held.append(work)
            parts_taken = work.parts_taken
            while (done := lead(self._desk, product, work, most)) == UNDONE:
                time.sleep(0)  # whoever is not ready may have no core
        finally:
            if close(self._desk, product.pieces_taken, parts_taken):
                self._held.clear()
                _idle.append(self)
        return done == DONE

    def _hire(self, count: int) -> None:
        """Have so many threads at least, or as many as the system allows."""
        while len(self._cells) < count:
            self._cells.append(_cell())
            arguments = (self._desk, self._cells[-1], *_example), self._held
            try:  # not threading.Thread: after Ctrl-C in its `start` a thread may wait for ever before it begins
                _thread.start_new_thread(_serve, arguments)
            except RuntimeError:
                self._cells.pop()
                break
        if len(self._addresses) < len(self._cells):
            self._addresses = np.array([cell.ctypes.data for cell in self._cells], np.int64)


def _serve(arguments: tuple[Any, ...], held: object) -> None:
    serve(*arguments)


def _dismiss(cells: list[Positions], process: int) -> None:
    """Have the threads of some cells end, unless they did not come along into this process."""
    for cell in cells if process == os.getpid() else ():
        tell(cell.ctypes.data, -ALL)


def compile_team(product: Product, work: Choosing) -> None:
    """Compile what threads run."""
    _example[:] = _empty_like((product, work))
    cell = _cell()
    _dismiss([cell], os.getpid())
    serve(_desk(), cell, *_example)


def _empty_like(value: Any) -> Any:
    """Return a value of the same types, with empty arrays."""
    if isinstance(value, tuple):
        parts = map(_empty_like, value)
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return np.zeros((0,) * value.ndim, value.dtype) if isinstance(value, np.ndarray) else value


def _desk() -> Desk:
    numbers = ROOM // 8
    return Desk(*(np.zeros(size, np.int64) for size in (numbers, numbers, CELL, CELL, CELL)))


def _cell() -> Positions:
    """Return a cell with a mutex and a condition of the system."""
    cell, system = np.zeros(CELL, np.int64), ctypes.CDLL(None)
    for function, at in (system.pthread_mutex_init, 0), (system.pthread_cond_init, CONDITION):
        if function(ctypes.c_void_p(cell[at:].ctypes.data), None):
            raise MemoryError("the system has no more mutexes")
    return cell
