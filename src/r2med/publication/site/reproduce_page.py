"""The data of the reproduction page: expected scores, the commands that compute them, and the scores of our records."""

from __future__ import annotations

from typing import Any

from r2med.evaluation.records.collection import RecordCollection
from r2med.publication.leaderboard.expectations import expectations
from r2med.publication.leaderboard.reproduction import Reproduction, outcome


def reproduce_value(collection: RecordCollection) -> list[dict[str, Any]]:
    """Return all expectations in their order, with the scores of the records."""
    return [_row(outcome(expected, collection.records(expected.system))) for expected in expectations()]


def _row(reproduction: Reproduction) -> dict[str, Any]:
    expected = reproduction.expectation
    return {
        "name": expected.label or expected.system,
        "source": expected.source,
        "seen_with": expected.seen_with,
        "conditions": list(expected.conditions),
        "command": reproduction.command,
        "data": expected.data,
        "ok": expected.ok,
        "near": expected.near,
        "verdict": reproduction.verdict,
        "run_with": ", ".join(f"{name} {version}" for name, version in reproduction.versions.items()),
        "figures": [[f.dataset, f.measure, f.expected, f.observed, f.verdict] for f in reproduction.figures],
    }
