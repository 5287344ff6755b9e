"""The board has the means over runs, and how often each system was run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from r2med.evaluation.comparison.answer_worth import worth
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.record import record_key
from r2med.foundation.core.cost import Cost
from r2med.publication.site.answer_rows import answers_value
from r2med.publication.site.board_answers import read_board_answers
from r2med.publication.site.leaderboard import site_value
from support.records import collection, record, repeated
from support.synthetic_answers import synthetic, varying, write

SYSTEMS = {"often(x)": (0.5, 4), "once(x)": (0.4, 1), "bm25": (0.3, -1)}


def test_rows_have_means_and_runs() -> None:
    made = repeated(SYSTEMS, {"demo/Biology": 30}, noise=0.05, shift=0.05)
    value = site_value(collection(made))
    rows = {row["name"]: row for row in value["systems"]}
    assert {name: row["runs"] for name, row in rows.items()} == {
        "often(x)": "4 runs",
        "once(x)": "one run",
        "bm25": "deterministic",
    }
    place = [each["name"] for each in value["sets"]].index("demo")
    average = rows["often(x)"]["averages"][place]
    means = [each.mean["nDCG@10"] for each in made if each.system == "often(x)"]
    assert average["value"] == pytest.approx(sum(means) / 4, abs=1e-6)


def test_costs_failures_and_the_number_of_records_are_those_of_all_runs() -> None:
    made = [record("a(x)", "ward", [0.5] * 10, seconds=each, repeat=n) for n, each in enumerate((1.0, 2.0, 6.0))]
    [stage] = made[2].stages
    failed = stage.model_copy(update={"failures": 1, "asked": 100, "cost": stage.cost + Cost(calls=100)})
    value = site_value(collection([*made[:2], made[2].model_copy(update={"stages": (failed,)})]))
    [row] = value["systems"]
    assert row["cost"]["seconds"] == pytest.approx(3.0), "the mean of the runs"
    assert row["failures"] == 1 and "3 records" in value["foot"]


def test_published_rows_do_not_state_their_runs() -> None:
    value = site_value(collection(repeated(SYSTEMS, {"demo/Biology": 5})))
    assert {row["runs"] for row in value["published"]} == {"runs not stated"}


def test_answers_of_several_runs_have_their_means_and_intervals_of_questions_and_runs(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    easy = random.uniform(0.2, 0.5, 30)
    for repeat in range(4):
        right = {"retrieved": (easy + 0.2 * repeat / 3).tolist(), "closed book": easy.tolist()}
        made = synthetic(right)
        settings = {**made.settings, **({"repeat": repeat} if repeat else {})}
        changes = {"settings": settings, "key": record_key(settings, "Biology", "answers")}
        write(varying(made).model_copy(update=changes), tmp_path)
    read = collection([record("bm25", "Biology", [0.5] * 30)])
    answers = read_board_answers([tmp_path], read)
    [view] = answers_value(answers, read, ["Biology"])
    [row] = view["rows"]
    assert row["runs"] == "4 runs"
    found = row["scores"]["retrieved"]["accuracy"]
    assert found["value"] == pytest.approx(easy.mean() + 0.1, abs=1e-4)
    [gain] = [each.gain for each in worth(collect([tmp_path], kind="answers"))]
    assert gain is not None and gain.low is not None and gain.high is not None
    assert (row["gain"]["low"], row["gain"]["high"]) == pytest.approx((gain.low / 100, gain.high / 100), abs=1e-4)
    assert row["gain"]["high"] - row["gain"]["low"] > 0.2, "without the runs all gains are equal"
