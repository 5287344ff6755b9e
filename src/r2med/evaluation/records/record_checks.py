"""Check the content of a record before it is shown. A checksum does not prove that r2med wrote the file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from r2med.evaluation.records.record import Record, StageFacts
from r2med.evaluation.records.system_names import name_fault

LARGEST = 1e15
"""The largest number in a record. Beyond it sums lose digits, and no corpus has that many documents or tokens."""


def record_faults(record: Record) -> Iterator[str]:
    """Yield faults that the types allow, but that no table or board can show."""
    if not record.stages or not record.per_query:
        yield "it has no stages or no scores"
    if not _are_settings(record.settings):
        yield "its settings are not those of a system"
    if not record.mean:
        yield "it has no mean of any measure"
    for query, values in record.per_query.items():
        if values.keys() != record.mean.keys():
            yield f"{query[:60]} has other measures than the mean"
    if record.name and name_fault(record.name):
        yield f"{record.name[:200]!r} cannot be the name of a system"
    numbers = [number for stage in record.stages for number in _numbers(stage)]
    if any(number < 0 for number in numbers):
        yield "the cost of a stage is negative"
    if any(number > LARGEST for number in numbers):
        yield f"it contains a number above {LARGEST:g}"


def _are_settings(settings: Mapping[str, Any]) -> bool:
    """Return True if each stage in the settings is a mapping, because a board reads its values."""
    rerank = settings.get("rerank") or []
    if not isinstance(rerank, list):
        return False
    parts = [settings.get("expand") or {}, settings.get("retrieve") or {}, *rerank]
    return all(isinstance(part, Mapping) for part in parts)


def _numbers(stage: StageFacts) -> list[float]:
    took = [*vars(stage.cost).values(), *vars(stage.prepared).values()]
    return [stage.failures, *(value for value in took if isinstance(value, int | float))]
