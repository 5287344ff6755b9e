"""Families of systems: the same system with other depths, samples, turns or LLMs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import Call, Calls, parse, printed_system
from r2med.foundation.runtime.stages import Stage
from r2med.systems.system.system import System
from r2med.systems.system.system_specs import asks_llm, changed_inside

VARIED = ("samples", "turns")
"""Settings that differ within a family. Depths and LLMs differ too."""


@cache
def family_key(name: str) -> str:
    """Return the name of a system without what differs within its family. Systems with one key are one family.

    A name that is no system, such as that of a published row, is its own key.
    """
    try:
        return printed_system(_without_variations(parse(name)))
    except UserError:
        return name


def _without_variations(calls: Calls) -> Calls:
    return tuple(tuple(map(_plain, stage)) for stage in calls)


def _plain(call: Call) -> Call:
    call = changed_inside(call, _without_variations, _plain)
    return replace(
        call,
        arguments=("LLM",) if call.arguments and asks_llm(call) else call.arguments,
        settings=tuple((key, value) for key, value in call.settings if key not in VARIED),
        depth=None,
    )


def families(names: Iterable[str]) -> list[list[str]]:
    """Return the families of some systems that have two or more members, in the order of the names."""
    found: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        found.setdefault(family_key(name), []).append(name)
    return [members for members in found.values() if len(members) > 1]


def family_label(members: Sequence[str]) -> str:
    """Return one name for a family, with braces around what differs: `bm25 → bge-reranker@{10,20}`."""
    rows = [re.findall(r"[\w.:/-]+|.", name) for name in members]
    if len({*map(len, rows)}) > 1:  # a default is left out of a name
        return f"{members[0]} and {len(members) - 1} more"
    columns = [list(dict.fromkeys(column)) for column in zip(*rows, strict=True)]
    return "".join(words[0] if len(words) == 1 else f"{{{','.join(words)}}}" for words in columns)


def reuse_notes(systems: Sequence[System]) -> Iterator[str]:
    """Yield a sentence for each family: do larger settings use the answers of smaller ones again?"""
    by_name = {system.name: system for system in systems}
    for members in families(by_name):
        ordered = sorted((by_name[name] for name in members), key=_effort)
        reused = {
            larger.reuses(smaller)
            for before, after in _growing(ordered)
            for smaller, larger in zip(_stages(before), _stages(after), strict=False)
            if larger != smaller
        } - {None}
        if reused:
            said = (
                "no answers are used again, because what the model reads together changes with this setting"
                if False in reused
                else "larger settings use the answers of smaller ones again, and ask only for the rest"
            )
            yield f"{family_label(members)}: {said}."


def _growing(ordered: Sequence[System]) -> Iterator[tuple[System, System]]:
    """Yield each system with the last one before it of which no setting is larger."""
    for number, after in enumerate(ordered):
        for before in reversed(ordered[:number]):
            efforts = zip(_effort(before), _effort(after), strict=False)
            if all(less <= more for one, other in efforts for less, more in zip(one, other, strict=True)):
                yield before, after
                break


def _stages(system: System) -> list[Stage]:
    return [*filter(None, (system.expander,)), *system.rerankers]


def _effort(system: System) -> list[tuple[int, int]]:
    return [(getattr(stage, "depth", 0), getattr(stage, "samples", 0)) for stage in _stages(system)]
