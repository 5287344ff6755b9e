"""One value or several: how public functions take names, paths and objects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set, ValuesView
from typing import Any


def several(given: object) -> list[Any]:
    """Return the values as a list. One value is a list of one; None and an empty text are an empty list.

    Any object that is not a list, tuple, set, iterator or view counts as one value, because a model or a dataset may
    also be something to iterate over.
    """
    if given is None or (isinstance(given, str) and not given):
        return []
    if isinstance(given, Sequence | Set | ValuesView | Iterator) and not isinstance(given, str | bytes):
        return list(given)
    return [given]


def flattened(given: Sequence[object]) -> list[Any]:
    """Return the positional arguments of a call as one list. An argument may itself be a list of values."""
    return [value for each in given for value in several(each)]
