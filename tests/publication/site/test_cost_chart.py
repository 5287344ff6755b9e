"""Quality against cost on the board."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.records.record import Record
from r2med.foundation.core.cost import Cost
from r2med.publication.site import make_board
from r2med.publication.site.leaderboard import site_value
from support.by_day import some_by_day
from support.records import collection, records, write_records

from .conftest import Open

DEPTHS = [f"bm25 → groupwise(gpt4)@{depth}" for depth in (10, 20, 50)]
QUALITY = {"bm25": 0.3, DEPTHS[0]: 0.45, DEPTHS[1]: 0.55, DEPTHS[2]: 0.535, "minilm": 0.2}


def priced(made: Record) -> Record:
    """Return a record whose queries cost more with a larger depth."""
    depth = int(made.system.rpartition("@")[2]) if "@" in made.system else 0
    queries = made.dataset.queries
    cost = Cost(seconds=queries * (1 + depth), dollars=queries * depth / 1000, prompt_tokens=queries * depth * 100)
    return made.model_copy(update={"stages": (made.stages[0].model_copy(update={"cost": cost}),)})


MADE = [priced(each) for each in records(QUALITY, {"notes": 60})]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("costs")
    return make_board([write_records(MADE, folder / "results")], folder / "board", texts=False).parent


def test_rows_have_their_cost() -> None:
    rows: dict[str, Any] = {row["name"]: row for row in site_value(collection(MADE))["systems"]}
    assert rows[DEPTHS[1]]["cost"] == pytest.approx({"dollars": 0.02, "tokens": 2000, "seconds": 21})


@pytest.mark.parametrize("axis", some_by_day(["dollars", "tokens", "seconds"], 3))
def test_the_chart_has_a_point_and_an_interval_for_each_system(open_page: Open, axis: str) -> None:
    page = open_page(f"#/leaderboard?view=chart&x={axis}")
    assert page.locator("svg.chart .mark").count() == 5
    assert page.locator("svg.chart .whisker").count() == 5
