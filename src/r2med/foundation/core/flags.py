"""How a parameter is given: typed on a command line, or as one value or several in Python.

Fields of `Setup` and parameters of public functions declare their flag once. A parameter of a public function is
declared by its annotation: `seed: Annotated[int, Flag("Seed of …")] = 0`. A parameter without such a declaration can be
given in Python only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set, ValuesView
from dataclasses import dataclass
from typing import Any

DATA, MODELS, LLMS, WHAT, OUTPUT = "Data", "Models", "LLMs", "What to run", "Output"
"""Panels of help pages."""


@dataclass(frozen=True)
class Flag:
    """An option of a command."""

    help: str
    panel: str = ""
    """Panel of the help page. A field of Setup without a panel has no flag."""
    names: tuple[str, ...] = ()
    """Spellings of the flag. Empty means the name of the parameter with two dashes."""
    metavar: str = ""
    show_default: bool = True
    kind: Any = None
    """Type of the typed value, if the type of the parameter does not say it."""
    is_list: bool = False
    """True if the flag may be repeated. A parameter that takes a sequence says so itself."""
    completion: str = ""
    """Function of `cli.completion` that completes the value."""
    low: float | None = None
    high: float | None = None
    """The smallest and the largest number that can be typed."""
    read: Callable[[Any], Any] | None = None
    """Function that turns what was typed into the value of the parameter."""
    is_rare: bool = False
    """True if only `--help-all` shows the flag."""


class Argument(Flag):
    """A word of a command without a flag."""


@dataclass(frozen=True, init=False)
class SetupFlags:
    """The fields of Setup that a command sets: as the parameter `setup` of its function, or as its other keywords."""

    names: tuple[str, ...]
    helps: dict[str, str]
    """Help texts that replace those of the fields."""

    def __init__(self, *names: str, **helps: str) -> None:
        self.__dict__.update(names=names, helps=helps)


def as_list(value: object) -> list[Any]:
    """Return the values as a list. One value is a list of one; None and an empty text are an empty list.

    Any object that is not a list, tuple, set, iterator or view counts as one value, because a model or a dataset may
    also be something to iterate over.
    """
    if value is None or (isinstance(value, str) and not value):
        return []
    if isinstance(value, Sequence | Set | ValuesView | Iterator) and not isinstance(value, str | bytes):
        return list(value)
    return [value]


def flattened(arguments: Sequence[object]) -> list[Any]:
    """Return the positional arguments of a call as one list. An argument may itself be a list of values."""
    return [value for argument in arguments for value in as_list(argument)]
