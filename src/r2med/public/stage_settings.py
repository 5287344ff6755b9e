"""Describe the settings of stages for help and docs, from their declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from r2med.foundation.core.names import Kind, stage_class
from r2med.foundation.runtime.stages import Stage, bare_type, place_of, printed


@dataclass(frozen=True)
class StageSetting:
    """The description of one setting for help and docs."""

    name: str
    default: str
    values: str
    """The allowed values: a list of words, or a type with its bounds."""
    meaning: str
    at: str = ""
    """The position: "argument" comes first and without its name, "depth" after an @, all others as KEY=VALUE."""
    required: bool = False


def help_of(name: str, kind: Kind) -> Iterator[StageSetting]:
    """Yield the settings of a stage from its declaration. The argument comes first."""
    yield from help_of_class(stage_class(name, kind), name)


def help_of_class(declared: type[Stage], name: str) -> Iterator[StageSetting]:
    """Yield the settings of a name that a class declares."""
    defaults = declared.defaults(name)
    for key, field in declared.model_fields.items():
        if key != "name" and place_of(field) != "derived" and key not in declared.settings_of_card(name):
            required = field.is_required() and key not in defaults
            default = None if required else defaults.get(key, field.get_default(call_default_factory=True))
            values = (
                "the name of an LLM" if declared.takes == "llm" and place_of(field) == "argument" else _values(field)
            )
            shown = "" if default is None else printed(default)
            yield StageSetting(key, shown, values, field.description or "", place_of(field), required)


def _values(field: FieldInfo) -> str:
    annotation = bare_type(field.annotation)
    if get_origin(annotation) is Literal:
        return " or ".join(str(choice) for choice in get_args(annotation) if choice != "")
    if get_origin(annotation) is tuple:
        return _JOINED[bare_type(get_args(annotation)[0])]
    word = _WORDS.get(annotation, "text")
    low = next((getattr(rule, "ge", None) for rule in field.metadata if hasattr(rule, "ge")), None)
    high = next((getattr(rule, "le", None) for rule in field.metadata if hasattr(rule, "le")), None)
    bounds = f" from {printed(low)} to {printed(high)}" if low is not None and high is not None else ""
    return word + (bounds or (f" from {printed(low)}" if low is not None else ""))


_WORDS: Mapping[Any, str] = {int: "whole number", float: "number", bool: "yes or no", Stage: "a retriever"}
_JOINED: Mapping[Any, str] = {
    float: "numbers joined by :",
    str: "words joined by :",
    Stage: "retrievers joined by +",
}
