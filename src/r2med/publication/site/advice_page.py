"""The data of the advice page: the ladder of each dataset, its verdict, and the recommended command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r2med.evaluation.advice.advice import SUFFIX, Advice, Group
from r2med.foundation.runtime.typed_notices import as_typed

GROUPS: Mapping[Group, str] = {
    "words": "Words",
    "feedback": "Feedback",
    "dense": "Dense models",
    "fusion": "Fusion",
    "expansion": "Expansion by an LLM",
    "reranking": "Reranking",
}
"""Group of the ladder -> its title, in the order of the ladder."""


def read_advice(sources: Sequence[str | Path]) -> list[Advice]:
    """Read the advice files in folders of results."""
    paths = [path for source in sources for path in sorted(Path(source).rglob(f"*{SUFFIX}"))]
    return [Advice.read(path) for path in dict.fromkeys(paths)]


def advice_value(advice: Advice) -> dict[str, Any]:
    """Return advice in the form of the page, with scores between 0 and 1. Its sentences name flags and commands."""
    return {
        **asdict(advice),
        "groups": [{"name": name, "title": title} for name, title in GROUPS.items()],
        "left_out": list(map(as_typed, advice.left_out)),
        "not_tried": list(map(as_typed, advice.not_tried)),
        "rungs": [
            {**asdict(rung), **{name: _share(getattr(rung, name)) for name in ("value", "low", "high", "behind")}}
            for rung in advice.rungs
        ],
        "reason": as_typed(advice.reason),
        "limits": list(map(as_typed, advice.limits)),
        "command": advice.serve,
    }


def _share(points: float | None) -> float | None:
    return None if points is None else points / 100
