"""The repeats of an evaluation: the number of a record, and whether those of a system are complete and alike."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

REPEAT = "repeat"
"""The setting with the number of a repeat. It is left out in repeat 0, so that a single run keeps its key."""


def repeat_of(settings: Mapping[str, Any]) -> int:
    """Return the number of the repeat in the settings of a record, from 0."""
    return int(settings.get(REPEAT, 0))


def repeat_setting(repeat: int) -> dict[str, int]:
    """Return the setting of a repeat, for the settings of a record."""
    return {REPEAT: repeat} if repeat else {}


def stages_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a record that are known beforehand and equal in all repeats.

    The digest of the texts and the key of the ranking that was read are not.
    """
    later = ("generations", "retrieval", REPEAT)
    return {name: _without_repeat(value) for name, value in settings.items() if name not in later}


def _without_repeat(value: Any) -> Any:
    """Return a setting without the number of the repeat, which the key of a stage that varies may contain."""
    if isinstance(value, dict):
        return {name: _without_repeat(each) for name, each in value.items() if name != REPEAT}
    return [_without_repeat(each) for each in value] if isinstance(value, list | tuple) else value


def setting_difference(first: Any, other: Any) -> str:
    """Return the first setting that differs, with both values; empty if all are equal.

    The text is such as: `retrieve.dtype is "bfloat16", but "float32"`.
    """
    return next(_differences(first, other), "")


def _differences(first: Any, other: Any, where: str = "") -> Iterator[str]:
    if isinstance(first, Mapping) and isinstance(other, Mapping):
        for name in {**first, **other}:
            yield from _differences(first.get(name), other.get(name), f"{where}.{name}" if where else name)
    elif isinstance(first, list | tuple) and isinstance(other, list | tuple) and len(first) == len(other):
        for number, (old, new) in enumerate(zip(first, other, strict=True), 1):
            yield from _differences(old, new, f"{where} {number}")
    elif first != other:
        yield f"{where.lstrip()} is {json.dumps(other)[:200]}, but {json.dumps(first)[:200]}"


def mixed_repeats(runs: Sequence[Mapping[str, Any]]) -> str:
    """Return how the settings of one repeat of a system differ from those of another; empty if they do not.

    `runs` are the settings of the records of one system on one dataset.
    """
    for first, other in pairwise(sorted(runs, key=repeat_of)):
        if found := setting_difference(stages_of(first), stages_of(other)):
            return f"repeat {repeat_of(other)} has other settings than repeat {repeat_of(first)}: {found} there"
    return ""


def repeat_fault(runs: Iterable[tuple[str, str, Mapping[str, Any]]]) -> str:
    """Return what is wrong with the repeats of systems on datasets, in one line; empty if all of them are there.

    `runs` are (system, dataset, settings). The numbers of a system on a dataset must be 0, 1, … n - 1, each once, n
    must be the same on all its datasets, and all other settings must be equal.
    """
    cells: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for system, dataset, settings in runs:
        cells.setdefault((system, dataset), []).append(settings)
    sizes: dict[str, tuple[str, int]] = {}
    for (system, dataset), made in cells.items():
        numbers = [repeat_of(settings) for settings in made]
        where = f"{system[:200]} on {dataset[:200]}"
        if doubled := sorted(number for number, times in Counter(numbers).items() if times > 1):
            return f"{where}: it has two records" + (f" of repeat {doubled[0]}" if len({*numbers}) > 1 else "")
        if missing := sorted({*range(max(numbers) + 1)} - {*numbers}):
            there = ", ".join(map(str, sorted(numbers)))
            return f"{where}: repeat {missing[0]} is missing, it has only {there}: all repeats from 0 on are needed"
        if mixed := mixed_repeats(made):
            return f"{where}: {mixed}"
        other, size = sizes.setdefault(system, (dataset, len(numbers)))
        if size != len(numbers):
            return (
                f"{system[:200]} was run {size} times on {other[:200]} and {len(numbers)} times on {dataset[:200]}: "
                "all its datasets need the same repeats"
            )
    return ""
