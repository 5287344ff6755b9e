"""The data of the reproduction page: expected scores, the commands that compute them, and the scores of our records.

Scores that the authors of this package computed come with it (`verified_scores.py`).
"""

from __future__ import annotations

from typing import Any, get_args

from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import RecordCollection
from r2med.publication.leaderboard.expectations import Expectation, expectations
from r2med.publication.leaderboard.reproduction import Figure, Reproduction, Verdict, outcome
from r2med.publication.leaderboard.verified_scores import NOT_YET, VerifiedScores, main_figure


def reproduce_value(collection: RecordCollection) -> dict[str, Any]:
    """Return all expectations in their order, with the scores of the records, and the verdicts that there are."""
    verified = VerifiedScores.read()
    rows = [
        {**_row(outcome(expected, _runs(expected, collection))), "by_us": _by_us(expected, verified)}
        for expected in expectations()
    ]
    return {"verdicts": get_args(Verdict), "by_us": verified.statement if verified else NOT_YET, "rows": rows}


def _by_us(expected: Expectation, verified: VerifiedScores | None) -> str:
    """Return the score that we computed, with its verdict; empty if we did not run the system."""
    if verified is None or (row := verified.row(expected)) is None:
        return ""
    figure = main_figure(row)
    return f"{figure.observed:.2f} ({row.verdict}), r2med {row.versions.get('r2med', '')}, {verified.created}"


def _runs(expected: Expectation, collection: RecordCollection) -> dict[str, list[Record]]:
    """Return the runs of the expected system. Those with the prompt of its authors come first."""
    system = next((name for name in expected.systems if collection.records(name)), "")
    return {name: [kept.record for kept in collection.repeats(system, name)] for name in collection.records(system)}


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
