"""`r2med.plan`: what a call would do. A public function says when its plan is made, and may be stopped there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import emit, listener_of, listening_to

if TYPE_CHECKING:
    from r2med.foundation.core.plan import Plan
    from r2med.foundation.runtime.runtime import Runtime


@dataclass(frozen=True)
class PlanMade:
    """The event that a call has made its plan. Nothing is done yet."""

    plan: object


class _StoppedError(Exception):
    """Ends a call whose plan is made."""


@dataclass(frozen=True)
class PlannedCalls:
    """What LLMs would be asked, by stage or template, with the runtime that estimates the time."""

    previews: Mapping[str, Plan]
    runtime: Runtime


def planned(make: Callable[[], object]) -> None:
    """Make the plan of a call if only its plan is wanted. The call then ends here."""
    if listener_of(PlanMade) is not None:
        emit(PlanMade(make()))


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
