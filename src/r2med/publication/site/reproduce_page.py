"""The data of the reproduction page: expected scores, the commands that compute them, and the scores of our records."""

from __future__ import annotations

from typing import Any, get_args

from r2med.evaluation.records.collection import RecordCollection
from r2med.evaluation.records.record import Record
from r2med.publication.leaderboard.expectations import Expectation, expectations
from r2med.publication.leaderboard.reproduction import Figure, Reproduction, Verdict, outcome


def reproduce_value(collection: RecordCollection) -> dict[str, Any]:
    """Return all expectations in their order, with the scores of the records, and the verdicts that there are."""
    rows = [_row(outcome(expected, _records(expected, collection))) for expected in expectations()]
    return {"verdicts": get_args(Verdict), "rows": rows}


def _records(expected: Expectation, collection: RecordCollection) -> dict[str, Record]:
    """Return the records of the expected system. Those with the prompt of its authors come first."""
    return next((found for name in expected.systems if (found := collection.records(name))), {})


def _row(reproduction: Reproduction) -> dict[str, Any]:
    expected = reproduction.expectation
    return {
        "name": expected.label or expected.system,
        "source": expected.source,
        "seen_with": expected.seen_with,
        "conditions": [*reproduction.remarks, *expected.conditions],
        "command": reproduction.command,
        "data": expected.data,
        "ok": expected.ok,
        "near": expected.near,
        "verdict": reproduction.verdict,
        "run_with": ", ".join(f"{name} {version}" for name, version in reproduction.versions.items()),
        "figures": {name: [getattr(each, name) for each in reproduction.figures] for name in Figure.model_fields},
    }
