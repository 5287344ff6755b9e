"""How threads of a team wait for work, and take it: compiled, outside the interpreter.

Whoever asks puts a product on the desk and opens it, wakes the threads, and puts down what is to be chosen after that.
A thread counts itself in before it looks whether the desk is open; who asked closes it before looking whether anybody
is in. Both are atomic, and in the same order for all, so nobody reads from a desk that is being laid anew.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numba.np.numpy_support import carray

from r2med.retrieve.dense.exact.arrays import Positions
from r2med.retrieve.dense.exact.choosing_kernels import Choosing, choose
from r2med.retrieve.dense.exact.instructions import fetch_add, get, pointer, put, wait
from r2med.retrieve.dense.exact.jit import compiled
from r2med.retrieve.dense.exact.product_kernels import Product, multiply

CELL = 64
"""Numbers of 64 bits of a cell: a mutex, a condition, and a number that its thread is told."""
CONDITION, TOLD = 16, 32
"""Where they are in it."""
ALL = 1 << 62
"""More pieces, or parts, than there are."""
DONE, UNDONE, UNCHECKED = 0, 1, 2
"""Of a step: it is done; there is more to do, or others are at it; the scores must be looked at before choosing."""

_lock = types.ExternalFunction("pthread_mutex_lock", types.int32(types.voidptr))
_unlock = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.voidptr))
_sleep = types.ExternalFunction("pthread_cond_wait", types.int32(types.voidptr, types.voidptr))
_wake = types.ExternalFunction("pthread_cond_signal", types.int32(types.voidptr))


class Desk(NamedTuple):
    """A product and what is to be chosen, whether the one and the other lie there, and whether all are idle.

    That is 0 if they are, and one less for each thread that is at it.
    """

    product: Positions
    work: Positions
    open: Positions
    ready: Positions
    idle: Positions


@compiled
def serve(desk: Desk, cell: Positions, product: Product, work: Choosing) -> None:
    """Help with whatever is on the desk each time that the cell's number is raised, until it is below 0.

    Product and work only show of what types the ones on the desk are.
    """
    mutex, condition, told = pointer(cell.ctypes.data), pointer(cell[CONDITION:].ctypes.data), 0
    while told >= 0:
        _lock(mutex)
        while cell[TOLD] == told:
            _sleep(condition, mutex)
        told = cell[TOLD]
        _unlock(mutex)
        fetch_add(desk.idle, -1)
        if told >= 0 and fetch_add(desk.open, 0) > 0:
            here = get(desk.product.ctypes.data, product)
            try:
                if _multiplied(here, int(np.int64(ALL))) and wait(desk.ready, 1):
                    choose(here, get(desk.work.ctypes.data, work))
            except Exception:  # there is no memory to multiply with: others do it
                pass
        fetch_add(desk.idle, 1)


@compiled
def ask(desk: Desk, cells: Positions, product: Product) -> None:
    """Have the threads of some cells multiply."""
    desk.ready[0] = 0
    put(desk.product.ctypes.data, product)
    fetch_add(desk.open, 1)
    for address in cells:
        tell(address, 1)


@compiled
def tell(address: int, number: int) -> None:
    """Add a number to that of a cell, and wake its thread."""
    cell = carray(pointer(address), CELL, np.int64)
    _lock(pointer(address))
    cell[TOLD] += number
    _unlock(pointer(address))
    _wake(pointer(cell[CONDITION:].ctypes.data))


@compiled
def lead(desk: Desk, product: Product, work: Choosing, most: int) -> int:
    """Multiply some pieces at most, choose if there are no more, and have others choose; return what is done.

    Threads look for each other for a while: one that sleeps meanwhile takes as long to wake up.
    """
    if not desk.ready[0]:
        put(desk.work.ctypes.data, work)
        fetch_add(desk.ready, 1)
    if not _multiplied(product, most):
        return UNDONE
    if not choose(product, work):
        return UNCHECKED
    return DONE if wait(work.parts_done, len(work.ends)) else UNDONE


@compiled
def _multiplied(product: Product, most: int) -> bool:
    """Multiply some pieces at most; return whether all are multiplied now, or soon after by others."""
    return multiply(product, most) and wait(product.pieces_done, len(product.odd))


@compiled
def close(desk: Desk, pieces_taken: Positions, parts_taken: Positions) -> bool:
    """Have no thread take any more; return whether all of them are gone, now or soon."""
    fetch_add(pieces_taken, ALL)
    fetch_add(parts_taken, ALL)
    fetch_add(desk.open, -1)
    return fetch_add(desk.idle, 0) == 0 or wait(desk.idle, 0)
