"""Check that an artefact of a pack has the files and the facts of its kind, so that nothing that reads it can fail."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

from r2med.core.cost import Cost

_FILES = {
    "run": {"rows.npy", "scores.npy"},
    "vectors": {"vectors.npy"},
    "query-vectors": {"vectors.npy"},
    "recall": set[str](),
}
"""Kind -> files that an artefact must have. All other kinds name theirs."""


def is_artefact(kind: str, meta: Mapping[str, Any], files: Collection[str]) -> bool:
    """Return True if files and facts are those of this kind."""
    try:
        if kind == "recall":
            numbers = [*meta["recall"].values(), meta["measured"], meta["sample"]]
            return not files and all(map(_is_number, numbers))
        costs = [meta["cost"], *([meta["prepared"]] if kind == "run" else [])]
        needed = _FILES.get(kind) or {"offsets.npy", *(f"{name}.npy" for name in meta["arrays"])}
        starts = isinstance(meta["start"], int) and meta["start"] >= 0 if kind in _OF_DOCUMENTS else True
        zeros = isinstance(meta.get("zeros", 0), int)
        return all(map(_is_cost, costs)) and needed <= {*files} and starts and zeros
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


_OF_DOCUMENTS = ("vectors", "token-vectors", "term-weights")
"""Kinds that are shards of a corpus and say where they begin."""


def _is_cost(values: Mapping[str, Any]) -> bool:
    facts = vars(Cost.from_dict(values))
    return all(map(_is_number, [*facts.pop("latencies"), *facts.values()]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0
