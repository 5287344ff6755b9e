"""The models in memory: loaded once for all datasets of a run, the least used given up first."""

from __future__ import annotations

import gc
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from r2med.encoders import device
from r2med.errors import UserError

KEPT = 3
"""Two towers of one model and one more, or the dense parts of a fusion: what a run goes back and forth between."""

T = TypeVar("T")

_kept: OrderedDict[Hashable, Any] = OrderedDict()
_lock = threading.RLock()


def loaded(key: Hashable, load: Callable[[], T]) -> T:
    """Return what is loaded under a key; if it does not fit beside the others, they go.

    Encoders must not hold on to it, or it could not be given up.
    """
    with _lock:
        if key not in _kept:
            while len(_kept) >= KEPT:
                _kept.popitem(last=False)
            found = _attempt(load)
            if found is None and _kept:
                forget()
                found = _attempt(load)
            if found is None:
                raise UserError("the model does not fit into the device's memory: use another --device or --dtype")
            _kept[key] = found
        _kept.move_to_end(key)
        result: T = _kept[key]
        return result


def _attempt(load: Callable[[], T]) -> T | None:
    try:
        return load()
    except Exception as error:
        if not device.is_out_of_memory(error):
            raise
        return None


def forget() -> None:
    """Give up all that is loaded."""
    with _lock:
        _kept.clear()
        gc.collect()
        device.release()
