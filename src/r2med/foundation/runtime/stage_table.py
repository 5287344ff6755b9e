"""From the calls of a typed system to its stages, and the types of settings that are stages themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from r2med.foundation.core.names import Kind, stage_class
from r2med.foundation.core.spec import Call, parse_stage
from r2med.foundation.runtime.stages import Stage


def stage(call: Call, kind: Kind) -> Stage:
    """Return the stage of a call."""
    declared: type[Stage] = stage_class(call.name, kind)
    return declared.parse(call)


def retriever(calls: Sequence[Call]) -> Stage:
    """Return the retriever of a call. Several calls are fused."""
    parts = tuple(stage(call, "retrieve") for call in calls)
    return parts[0] if len(parts) == 1 else stage_class("fuse", "retrieve")(name="fuse", parts=parts)


def _retriever(value: Any) -> Any:
    return retriever(parse_stage(value)) if isinstance(value, str) else value


def _retrievers(value: Any) -> Any:
    return tuple(stage(call, "retrieve") for call in parse_stage(value)) if isinstance(value, str) else value


Retrieving = Annotated[Stage, BeforeValidator(_retriever), PlainSerializer(lambda value: value.settings())]
"""A retriever as a setting, as in by=bm25(scorer=lucene)."""
Fused = Annotated[
    tuple[Stage, ...],
    BeforeValidator(_retrievers),
    PlainSerializer(lambda values: [value.settings() for value in values]),
]
"""Retrievers joined by plus signs."""
