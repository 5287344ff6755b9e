"""`r2med.plan`: what a call would do. A public function says when its plan is made, and may be stopped there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import emit, listening_to


@dataclass(frozen=True)
class PlanMade:
    """The event that a call has made its plan. Nothing is done yet."""

    plan: object


class _StoppedError(Exception):
    """Ends a call whose plan is made."""


def planned(plan: object) -> None:
    """Say that the plan of a call is made. The call ends here if only its plan is wanted."""
    emit(PlanMade(plan))


def plan(function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Return what a call would do, fetch and ask, like `--plan`: `plan(r2med.run, "bm25", data="demo")`.

    Nothing is run, asked or written. Raises UserError if the function has no plan.
    """
    return seen_plan(lambda made: made, function, *arguments, **settings)


def seen_plan(look: Callable[[Any], Any], function: Callable[..., Any], *arguments: Any, **settings: Any) -> Any:
    """Call a function until its plan is made, and return what `look` returns for it, while all that it uses is open."""
    from r2med.foundation.net.offline import planning

    seen: list[object] = []

    def stop(made: PlanMade) -> None:
        seen.append(look(made.plan))
        raise _StoppedError

    with planning(), listening_to(PlanMade, stop):
        try:
            function(*arguments, **settings)
        except _StoppedError:
            return seen[0]
    raise UserError(f"{function.__name__} has no plan: nothing that it does takes long or costs anything")
