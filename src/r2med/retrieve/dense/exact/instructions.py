"""The few instructions that numba has no words for."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from r2med.retrieve.dense.exact.jit import compiled

LOOKS = 1 << 11
"""Times that a thread looks for a number before it lets others have its core: some microseconds."""
YIELDS = 1 << 9
"""Times that it does so before it gives up: about a millisecond."""
ROOM = 1 << 14
"""Bytes that a value may take which is put down in memory."""


def _pointer(typing: Any, address: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(types.int64), code


pointer: Any = intrinsic(_pointer)
"""The pointer to an address."""


def _fetch_add(typing: Any, counter: Any, by: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.atomic_rmw("add", array.data, arguments[1], "seq_cst")

    return types.int64(counter, types.int64), code


fetch_add: Any = intrinsic(_fetch_add)
"""The number in an array of one, which then grows by another; of several threads, one after the other."""


def _load_acquire(typing: Any, counter: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.load_atomic(array.data, "acquire", 8)

    return types.int64(counter), code


load_acquire: Any = intrinsic(_load_acquire)
"""The number in such an array now. Whatever was written before others advanced it to that is seen from here on."""


def _put(typing: Any, place: Any, value: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        stored = _borrowed(context, builder, signature.args[1], arguments[1])
        if context.get_abi_sizeof(stored.type) > ROOM:
            raise TypeError(f"{value} takes more than {ROOM} bytes")
        builder.store(stored, builder.inttoptr(arguments[0], stored.type.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, value), code


put: Any = intrinsic(_put)
"""Write a value, with where its arrays lie, to a place in memory. The arrays must be kept."""


def _borrowed(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return a value whose arrays are not counted as used by whoever has it."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo, array.parent = (ir.Constant(each.type, None) for each in (array.meminfo, array.parent))
        return array._getvalue()
    if hasattr(kind, "types"):  # a tuple
        for at, each in enumerate(kind.types):
            part = _borrowed(context, builder, each, builder.extract_value(value, at))
            value = builder.insert_value(value, part, at)
    return value


def _get(typing: Any, place: Any, like: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = context.get_value_type(signature.return_type)
        return builder.load(builder.inttoptr(arguments[0], kind.as_pointer()))

    return like(types.int64, like), code


get: Any = intrinsic(_get)
"""What was written to a place in memory, of the same types as another value."""


_let_others = types.ExternalFunction("sched_yield", types.int32())


@compiled
def wait(counter: npt.NDArray[np.int64], number: int) -> bool:
    """Return whether a counter comes to a number within about a millisecond; whoever counts may have no core."""
    for _ in range(YIELDS):
        for _ in range(LOOKS):
            if load_acquire(counter) >= number:
                return True
        _let_others()
    return False


def _sgemm(typing: Any, function: Any, left: Any, right: Any, out: Any, sizes: Any) -> Any:
    """Call cblas_sgemm of an OpenBLAS with sizes of 64 bits: out = left · rightᵀ, all row by row."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, *arrays, lengths = arguments
        rows, columns, inner, apart = (builder.extract_value(lengths, at) for at in range(4))
        choice, number = ir.IntType(32), ir.FloatType()
        by_rows, as_is, transposed = (ir.Constant(choice, value) for value in (101, 111, 112))
        one, zero = ir.Constant(number, 1), ir.Constant(number, 0)
        a, b, c = (builder.inttoptr(array, cgutils.voidptr_t) for array in arrays)
        values = (by_rows, as_is, transposed, rows, columns, inner, one, a, inner, b, inner, zero, c, apart)
        kind = ir.FunctionType(ir.VoidType(), [value.type for value in values])
        builder.call(builder.inttoptr(address, kind.as_pointer()), values)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 4, sizes), code


sgemm: Any = intrinsic(_sgemm)
