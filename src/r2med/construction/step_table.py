"""The steps of builds by name. A new step is one class and one line in `construction/floor.toml`, or in a plugin."""

from __future__ import annotations

from r2med.foundation.core.errors import unknown
from r2med.foundation.core.registry import registered
from r2med.foundation.core.spec import Call
from r2med.foundation.runtime.stage_table import loaded_class, plugged
from r2med.foundation.runtime.stages import Stage

KIND = "build"


def step_names() -> list[str]:
    """Return the names of all steps."""
    return list(dict.fromkeys((*registered(KIND).names, *plugged(KIND))))


def step_class(name: str) -> type[Stage]:
    """Return the class that declares a step. Raises UserError if there is none."""
    if (path := registered(KIND).names.get(name)) is not None:
        return loaded_class(path)
    if name in plugged(KIND):
        return plugged(KIND)[name]
    raise unknown("step of a build", name, step_names())


def parse_step(call: Call) -> Stage:
    """Return the step of a call."""
    return step_class(call.name).parse(call)
