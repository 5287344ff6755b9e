"""The board has the means over runs, how often each system was run, and both parts of the intervals."""

from __future__ import annotations

import pytest

from r2med.publication.site.leaderboard import site_value
from support.records import collection, repeated

SYSTEMS = {"often(x)": (0.5, 4), "once(x)": (0.4, 1), "bm25": (0.3, -1)}


def test_rows_have_means_runs_and_both_parts_of_their_intervals() -> None:
    made = repeated(SYSTEMS, {"demo/Biology": 30}, noise=0.05, shift=0.05)
    value = site_value(collection(made))
    rows = {row["name"]: row for row in value["systems"]}
    assert {name: row["runs"] for name, row in rows.items()} == {
        "often(x)": "4 runs",
        "once(x)": "one run",
        "bm25": "deterministic",
    }
    place = [each["name"] for each in value["sets"]].index("demo")
    often, once, fixed = (rows[name]["chance"][place] for name in SYSTEMS)
    assert often["queries"] > 0 and often["runs"] > 0
    assert once["queries"] > 0 and once["runs"] is None
    assert fixed["queries"] > 0 and fixed["runs"] == 0
    average = rows["often(x)"]["averages"][place]
    means = [each.mean["nDCG@10"] for each in made if each.system == "often(x)"]
    assert average["value"] == pytest.approx(sum(means) / 4, abs=1e-6)
    half = (average["high"] - average["low"]) / 2
    assert often["queries"] ** 2 + often["runs"] ** 2 == pytest.approx(half**2, rel=1e-3)


def test_published_rows_do_not_state_their_runs() -> None:
    value = site_value(collection(repeated(SYSTEMS, {"demo/Biology": 5})))
    assert {row["runs"] for row in value["published"]} == {"runs not stated"}
