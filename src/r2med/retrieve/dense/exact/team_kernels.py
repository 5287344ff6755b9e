"""How threads of a team wait for work, and take it: compiled, outside the interpreter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.np.numpy_support import carray

from r2med.retrieve.dense.exact.arrays import Positions
from r2med.retrieve.dense.exact.jit import WAIT, call, compiled, fetch_add, get, pointer, put
from r2med.retrieve.dense.exact.kernels import Choosing, do_step
from r2med.retrieve.dense.exact.product_kernels import Product

DESK = 1 << 11
"""Numbers of 64 bits that what is to be done takes at most."""
CELL = 64
"""Those of a cell: a mutex, a condition, and what its thread is told."""
CONDITION, TOLD = 16, 32
"""Where they are in a cell."""
ALL = 1 << 62
"""More pieces, or parts, than there are."""


class Desk(NamedTuple):
    """What is to be done, whether there is something, and how many threads are at it."""

    order: Positions
    open: Positions
    inside: Positions


class Posix(NamedTuple):
    """Where the system has its functions."""

    lock: int
    unlock: int
    wait: int
    signal: int


@compiled
def serve(desk: Desk, cell: Positions, posix: Posix, product: Product, work: Choosing) -> None:
    """Help with whatever is on the desk each time that the cell's number is raised, until it is below 0.

    Product and work only show of what types the ones on the desk are.
    """
    mutex, condition, done = cell.ctypes.data, cell[CONDITION:].ctypes.data, 0
    while done >= 0:
        call(posix.lock, mutex, 0)
        while cell[TOLD] == done:
            call(posix.wait, condition, mutex)
        done = cell[TOLD]
        call(posix.unlock, mutex, 0)
        fetch_add(desk.inside, 1)
        if done >= 0 and fetch_add(desk.open, 0) > 0:
            on_desk = get(desk.order.ctypes.data, (product, work))
            try:  # noqa: SIM105 - numba has no contexts
                do_step(on_desk[0], on_desk[1], int(np.int64(ALL)))  # not for one number: that is compiled again
            except Exception:  # there is no memory here, and others do it
                pass
        fetch_add(desk.inside, -1)


@compiled
def ask(desk: Desk, cells: Positions, posix: Posix, product: Product, work: Choosing) -> None:
    """Have the threads of some cells begin a step."""
    put(desk.order.ctypes.data, (product, work))
    fetch_add(desk.open, 1)
    for address in cells:
        tell(address, posix, 1)


@compiled
def tell(address: int, posix: Posix, number: int) -> None:
    """Add a number to that of a cell, and wake its thread."""
    cell = carray(pointer(address), CELL, np.int64)
    call(posix.lock, address, 0)
    cell[TOLD] += number
    call(posix.unlock, address, 0)
    call(posix.signal, cell[CONDITION:].ctypes.data, 0)


@compiled
def close(desk: Desk, pieces_taken: Positions, parts_taken: Positions) -> bool:
    """Have no thread take any more; return whether all are gone after about a millisecond."""
    fetch_add(pieces_taken, ALL)
    fetch_add(parts_taken, ALL)
    fetch_add(desk.open, -1)
    asked = 0
    while fetch_add(desk.inside, 0) and asked < WAIT >> 5:
        asked += 1
    return not fetch_add(desk.inside, 0)
