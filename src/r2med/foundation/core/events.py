"""Events: work says what happens, and the blocks around it may listen. Work does not know who listens.

An event is a value, and its class is its kind. For each kind, the innermost block that listens gets the event. A block
that listens to a base class gets the events of its subclasses.
Progress, finished batches, reads from the store, versions of libraries and activities are events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

Event = TypeVar("Event")

_listeners: ContextVar[Mapping[type, Callable[[Any], None]]] = ContextVar(
    "r2med_listeners", default=MappingProxyType({})
)


def listener_of(kind: type[Event]) -> Callable[[Event], None] | None:
    """Return the function that gets events of a kind, or None. Threads do not inherit it: take it before they start."""
    return _listeners.get().get(kind)


def emit(event: object) -> None:
    """Pass an event to the block that listens to its kind, if there is one."""
    listeners = _listeners.get()
    for kind in type(event).__mro__ if listeners else ():
        if (listener := listeners.get(kind)) is not None:
            listener(event)
            return


@contextmanager
def listening_to(kind: type[Event], listener: Callable[[Event], None]) -> Iterator[None]:
    """Pass events of a kind that happen inside the block to `listener`, and not to the block around it."""
    token = _listeners.set({**_listeners.get(), kind: listener})
    try:
        yield
    finally:
        _listeners.reset(token)
