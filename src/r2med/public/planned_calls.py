"""The plan of a call that asks LLMs: what it would ask, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from r2med.foundation.core.events import listener_of
from r2med.public.call_plan import PlanMade, planned

if TYPE_CHECKING:
    from r2med.foundation.core.plan import Plan
    from r2med.foundation.runtime.runtime import Runtime


@dataclass(frozen=True)
class PlannedCalls:
    """Calls of LLMs by the name of what asks them. Nothing is asked yet."""

    plans: Mapping[str, Plan]
    runtime: Runtime


def planned_calls(preview: Callable[[], Mapping[str, Plan]], runtime: Runtime) -> None:
    """Say what a call would ask. The prompts are only made if somebody wants to know."""
    if listener_of(PlanMade) is not None:
        planned(PlannedCalls(preview(), runtime))
