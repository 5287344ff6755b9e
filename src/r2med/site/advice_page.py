"""The data of the page of advice: each dataset's ladder, its verdict, and the command that follows from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from r2med.advice.advice import SUFFIX, Advice


def read_advice(sources: Sequence[str | Path]) -> list[Advice]:
    """Return the advice that lies in folders of results."""
    paths = [path for source in sources for path in sorted(Path(source).rglob(f"*{SUFFIX}"))]
    return [Advice.read(path) for path in dict.fromkeys(paths)]


def advice_value(advice: Advice) -> dict[str, Any]:
    """Return advice as the page shows it; figures between 0 and 1."""
    return {
        **asdict(advice),
        "rungs": [
            {**asdict(rung), **{name: _share(getattr(rung, name)) for name in ("value", "low", "high", "behind")}}
            for rung in advice.rungs
        ],
        "reason": advice.reason,
        "command": advice.serve,
    }


def _share(points: float | None) -> float | None:
    return None if points is None else points / 100
