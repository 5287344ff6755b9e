"""The page of reproductions: every expectation with its command, and the verdict that our records give."""

from __future__ import annotations

from pathlib import Path

import r2med
from r2med.evaluation.records.collection import collect
from r2med.publication.leaderboard.expectations import expectations
from r2med.publication.site.reproduce_page import reproduce_value


def test_what_was_run_has_a_verdict_and_the_rest_is_not_run(tmp_path: Path) -> None:
    r2med.run("bm25", "demo/Biology", out=tmp_path)
    rows = reproduce_value(collect([tmp_path]))
    assert len(rows) == len(expectations())
    verdicts = {row["verdict"]: row for row in rows}
    assert set(verdicts) == {"OK", "not run"}
    assert verdicts["OK"]["command"] == "r2med run bm25 --data demo"
    assert "numpy" in verdicts["OK"]["run_with"] and not verdicts["not run"]["run_with"]
    assert verdicts["OK"]["figures"][0][2:] == [
        27.59,
        r2med.Record.read(next(tmp_path.rglob("bm25-*.json"))).mean["nDCG@10"] * 100,
        "OK",
    ]
