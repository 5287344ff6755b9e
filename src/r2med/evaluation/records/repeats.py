"""The repeats of an evaluation: which number a record has, and whether the repeats of a system are complete."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

REPEAT = "repeat"
"""The setting with the number of a repeat. It is left out in repeat 0, so that a single run keeps its key."""


def repeat_of(settings: Mapping[str, Any]) -> int:
    """Return the number of the repeat in the settings of a record, from 0."""
    return int(settings.get(REPEAT, 0))


def repeat_setting(repeat: int) -> dict[str, int]:
    """Return the setting of a repeat, for the settings of a record."""
    return {REPEAT: repeat} if repeat else {}


def with_valid_repeat(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings unchanged. Raises ValueError if the number of their repeat is not one above 0."""
    repeat = settings.get(REPEAT, 1)
    if type(repeat) is not int or repeat < 1:
        raise ValueError(f"the repeat in its settings is {str(repeat)[:20]!r}; it must be a whole number above 0")
    return settings


def repeat_fault(repeats: Iterable[tuple[str, str, int]]) -> str:
    """Return what is wrong with the repeats of systems on datasets, in one line; empty if all of them are there.

    `repeats` are (system, dataset, number). The numbers of a system on a dataset must be 0, 1, … n - 1, each once, and
    n must be the same on all its datasets.
    """
    cells: dict[tuple[str, str], list[int]] = {}
    for system, dataset, number in repeats:
        cells.setdefault((system, dataset), []).append(number)
    sizes: dict[str, tuple[str, int]] = {}
    for (system, dataset), numbers in cells.items():
        where = f"{system[:200]} on {dataset[:200]}"
        if doubled := sorted({each for each in numbers if numbers.count(each) > 1}):
            return f"{where}: it has two records" + (f" of repeat {doubled[0]}" if len({*numbers}) > 1 else "")
        if missing := sorted({*range(max(numbers) + 1)} - {*numbers}):
            there = ", ".join(map(str, sorted(numbers)))
            return f"{where}: repeat {missing[0]} is missing, it has only {there}: all repeats from 0 on are needed"
        other, size = sizes.setdefault(system, (dataset, len(numbers)))
        if size != len(numbers):
            return (
                f"{system[:200]} was run {size} times on {other[:200]} and {len(numbers)} times on {dataset[:200]}: "
                "all its datasets need the same repeats"
            )
    return ""
