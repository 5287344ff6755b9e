"""Quality against cost on the board: families, and what does not differ from the line."""

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

FAMILY = [f"bm25 → groupwise(gpt4)@{depth}" for depth in (10, 20, 50)]
QUALITY = {"bm25": 0.3, FAMILY[0]: 0.45, FAMILY[1]: 0.55, FAMILY[2]: 0.535, "minilm": 0.2}


def priced(made: Record) -> Record:
    """Return a record whose queries cost more with a larger depth."""
    depth = int(made.system.rpartition("@")[2]) if "@" in made.system else 0
    queries = made.dataset.queries
    cost = Cost(seconds=queries * (1 + depth), dollars=queries * depth / 1000, prompt_tokens=queries * depth * 100)
    return made.model_copy(update={"stages": (made.stages[0].model_copy(update={"cost": cost}),)})


MADE = [priced(each) for each in records(QUALITY, {"notes": 60})]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("families")
    return make_board([write_records(MADE, folder / "results")], folder / "board", texts=False).parent


def test_rows_have_their_family_their_cost_and_the_system_on_the_line_that_they_do_not_differ_from() -> None:
    rows: dict[str, Any] = {row["name"]: row for row in site_value(collection(MADE))["systems"]}
    label = "bm25 → groupwise(gpt4)@{10,20,50}"
    assert {name: row["family"] for name, row in rows.items() if row["family"]} == dict.fromkeys(FAMILY, label)
    assert rows[FAMILY[1]]["cost"] == pytest.approx({"dollars": 0.02, "tokens": 2000, "seconds": 21, "p95": 21})
    on_line = list(rows).index(FAMILY[1])
    assert {name: row["near"][-1] for name, row in rows.items() if any(row["near"])} == {
        FAMILY[2]: {"dollars": on_line, "tokens": on_line, "p95": on_line}
    }, "minilm differs from bm25, which costs the same"


@pytest.mark.parametrize("axis", some_by_day(["dollars", "tokens", "p95"], 3))
def test_the_chart_joins_a_family_and_rings_what_does_not_differ(open_page: Open, axis: str) -> None:
    page = open_page(f"#/leaderboard?view=chart&x={axis}")
    assert page.locator("svg.chart .mark").count() == 5
    assert page.locator("svg.chart .whisker").count() == 5
    [curve] = page.locator("svg.chart path.family").all()
    assert curve.get_attribute("d").count("L") == 2
    [ringed] = page.locator("svg.chart a:has(circle.near)").all()
    assert ringed.get_attribute("data-name").startswith(FAMILY[2])
    assert "does not differ significantly" in ringed.get_attribute("data-name")
    assert "A ring marks" in page.inner_text("main") and "joins a family" in page.inner_text("main")


def test_another_measure_has_no_rings(open_page: Open) -> None:
    page = open_page("#/leaderboard?view=chart&x=tokens&measure=MRR")
    assert page.locator("svg.chart path.family").count() == 1
    assert page.locator("svg.chart circle.near").count() == 0
