"""`r2med.plan`: what a call would do. A public function says when its plan is made, and may be stopped there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from r2med.foundation.core.errors import UserError

_look: ContextVar[Callable[[Any], None] | None] = ContextVar("r2med_plan", default=None)
"""The function that looks at the plan of a call before anything is done."""


class _StoppedError(Exception):
    """Ends a call whose plan is made."""


def planned(make: Callable[[], object]) -> None:
    """Make the plan of a call if somebody looks at it. If only the plan is wanted, the call ends here."""
    if (look := _look.get()) is not None:
        look(make())


@contextmanager
def looking_at_plan(look: Callable[[Any], None]) -> Iterator[None]:
    """Pass the plan of the call inside the block to `look`, before its work begins."""
    token = _look.set(look)
    try:
        yield
    finally:
        _look.reset(token)


def plan(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Return what a call would do, fetch and ask, like `--plan`: `plan(r2med.run, "bm25", data="demo")`.

    Nothing is run or asked. Raises UserError if the function has no plan.
    """
    return seen_plan(lambda made: made, function, *arguments, **settings)


def seen_plan(look: Callable[[Any], Any], function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function until its plan is made, and return what `look` returns for it, while all that it uses is open."""
    from r2med.foundation.net.offline import planning

    seen: list[object] = []

    def stop(made: Any) -> None:
        seen.append(look(made))
        raise _StoppedError

    with planning(), looking_at_plan(stop):
        try:
            function(*arguments, **settings)
        except _StoppedError:
            return seen[0]
    raise UserError(f"{function.__name__} has no plan: nothing that it does takes long or costs anything")
