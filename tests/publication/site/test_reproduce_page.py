"""The page of reproductions: every expectation with its command, and the verdict that our records give."""

from __future__ import annotations

from pathlib import Path

import r2med
from r2med.evaluation.records.collection import collect
from r2med.publication.leaderboard.expectations import expectations
from r2med.publication.site.reproduce_page import reproduce_value


def test_what_was_run_has_a_verdict_and_the_rest_is_not_run(tmp_path: Path) -> None:
    r2med.run("bm25", "demo/Biology", out=tmp_path)
    page = reproduce_value(collect([tmp_path]))
    assert list(page["verdicts"]) == ["OK", "near", "off", "not comparable", "not run"]
    rows = page["rows"]
    assert len(rows) == len(expectations())
    verdicts = {row["verdict"]: row for row in rows}
    assert set(verdicts) == {"OK", "not run"}
    assert verdicts["OK"]["command"] == "r2med run bm25 --data demo"
    assert "numpy" in verdicts["OK"]["run_with"] and not verdicts["not run"]["run_with"]
    figures = verdicts["OK"]["figures"]
    observed = r2med.Record.read(next(tmp_path.rglob("bm25-*.json"))).mean["nDCG@10"] * 100
    assert (figures["expected"][0], figures["observed"][0], figures["verdict"][0]) == (27.59, observed, "OK")
    assert {len(column) for column in figures.values()} == {len(figures["dataset"])}
