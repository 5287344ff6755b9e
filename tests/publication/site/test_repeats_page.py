"""Repeats on the pages of the board: how often a system was run, and one run is marked."""

from __future__ import annotations

from pathlib import Path

import pytest

from r2med.publication.site import make_board
from support.records import repeated, write_records

from .conftest import Open, unreached, whole

SYSTEMS = {"often(x)": (0.5, 4), "once(x)": (0.4, 1), "bm25": (0.3, -1)}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("repeats")
    made = repeated(SYSTEMS, {"questions-of-the-emergency-department": 30, "ward": 30}, noise=0.05, shift=0.05)
    return make_board([write_records(made, folder / "results")], folder / "board", texts=False).parent


def test_each_row_says_how_often_it_was_run_and_one_run_is_marked(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=own+data")
    whole(page)
    rows = {name: page.locator("tr.ours", has_text=name) for name in SYSTEMS}
    assert "4 runs" in rows["often(x)"].inner_text() and "deterministic" in rows["bm25"].inner_text()
    [chip] = page.locator(".chip", has_text="one run").all()
    assert "once(x)" in chip.locator("xpath=ancestor::tr").inner_text()
    assert "of the queries only" in chip.get_attribute("title")


def test_a_long_name_of_a_dataset_does_not_widen_the_page(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=own+data")
    assert [unreached(page, width) for width in (1400, 900, 390)] == [[], [], []]


def test_no_word_of_a_heading_or_name_is_broken_into_letters(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=own+data", viewport={"width": 900, "height": 844})
    whole(page)
    heading = page.locator("thead th.extra button", has_text="emergency")
    lines = heading.evaluate("(each) => Math.round(each.getBoundingClientRect().height / 18)")
    assert lines <= 5, "questions- / of-the- / emergency- / department / ↓"
    name = page.locator("tr.ours .name", has_text="once(x)")
    assert name.inner_text() == name.text_content() == "once(x)" and name.locator("wbr").count() == 1


def test_the_page_of_a_system_says_how_often_it_was_run_and_how_it_was_timed(open_page: Open) -> None:
    text = open_page("#/system?name=often(x)").inner_text(".figures")
    assert "4 runs" in text
    assert "the mean, with all queries worked on together" in text


def test_published_rows_do_not_state_their_runs(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=R2MED")
    whole(page)
    rows = page.locator("tr.published")
    assert rows.count() == page.locator("tr.published", has_text="runs not stated").count() > 100
