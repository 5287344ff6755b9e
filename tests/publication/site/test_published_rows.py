"""Published rows on the board, in a real browser: a command or a reason, what differs, and rows with few scores."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from r2med.publication.leaderboard.published import published
from r2med.publication.site import leaderboard
from support.by_day import some_by_day

from .conftest import Open, whole

R2MED = "#/leaderboard?set=R2MED"
PHONE = {"width": 390, "height": 844}
ONE = replace(
    published()[0], retriever="one-dataset-only", scores={"Biology": 99.5}, average=None, calls=(), reason="It is ours."
)
"""A row of a single dataset, better there than any other."""


@pytest.fixture(scope="module")
def site(records: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from r2med.publication.site import make_board

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setattr(leaderboard, "published", lambda: (*published(), ONE))
        return make_board([records], tmp_path_factory.mktemp("site") / "board").parent


def cells(page: Any, name: str) -> list[str]:
    """Return the texts of a row from its average on, and before them its rank."""
    whole(page)
    row = page.locator("tr[data-position]", has=page.get_by_text(name, exact=True))
    assert row.count() == 1
    return list(row.locator("td").evaluate_all("all => all.map((cell) => cell.innerText.trim())"))


@pytest.mark.parametrize("viewport", some_by_day([PHONE, {"width": 1280, "height": 900}], 2))
@pytest.mark.parametrize("scheme", some_by_day(["light", "dark"], 2))
def test_a_row_opens_to_the_command_that_runs_it_and_what_differs(
    open_page: Open, viewport: dict[str, int], scheme: str
) -> None:
    page = open_page(f"{R2MED}&q=grouprank-32b sorted", viewport=viewport, color_scheme=scheme)
    page.click(".toggle")
    assert page.inner_text(".details pre") == "r2med run 'diver → grouprank-32b:sorted@100' --data R2MED"
    assert page.is_visible(".details button:has-text('Copy')")
    assert "Known to differ from the published run: the wording of the prompt is ours" in page.inner_text(".details")
    assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]


def test_a_row_with_recorded_texts_is_run_with_them(open_page: Open) -> None:
    page = open_page(f"{R2MED}&q=hyde(o3-mini) nv")
    page.click(".toggle")
    assert page.inner_text(".details pre") == "r2med run 'hyde(o3-mini) → nv:published' --data R2MED --recorded"
    assert "No difference from the published run is known." in page.inner_text(".details")


@pytest.mark.parametrize("viewport", some_by_day([PHONE, {"width": 1280, "height": 900}], 2))
def test_a_row_without_a_command_says_why(open_page: Open, viewport: dict[str, int]) -> None:
    page = open_page(f"{R2MED}&q=Qwen3-4B-ms", viewport=viewport)
    assert page.inner_text("tr[data-position] .chip") == "cannot be run"
    page.click(".toggle")
    assert "never published its weights." in page.inner_text(".details")
    assert page.locator(".details pre").count() == 0


def test_a_command_is_reached_and_copied_by_the_keyboard(open_page: Open) -> None:
    page = open_page(f"{R2MED}&q=insertrank")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.keyboard.press("j")
    page.keyboard.press("o")
    page.wait_for_selector(".details pre")
    page.focus("tr[data-position] .toggle")
    page.keyboard.press("Tab")
    while page.evaluate("document.activeElement.textContent") != "Copy":
        before = page.evaluate("document.activeElement.closest('.details') !== null")
        assert before, "the button comes after the row's own switch"
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == "r2med run 'bm25 → insertrank(deepseek-r1)@100' --data R2MED"


def test_an_average_alone_has_its_rank_and_a_mark_and_no_score_of_a_dataset(open_page: Open) -> None:
    page = open_page(R2MED)
    rank, average, *others = cells(page, "first stage not published → InsertRank (DeepSeek-R1)")
    assert (rank.split()[0], average, set(others)) == ("3", "51.10", {"–"})
    page = open_page(f"{R2MED}&q=insertrank")
    assert page.inner_text("tr[data-position] .chip") == "average only as published"
    page.click(".toggle")
    assert "Single datasets\nnot published" in page.inner_text(".details")


@pytest.mark.slow
def test_a_row_of_one_dataset_is_under_that_dataset_and_in_no_average(open_page: Open) -> None:
    page = open_page(R2MED)
    rank, average, without, mean, biology, *others = cells(page, "one-dataset-only")
    assert (rank.split()[0], average, without, mean, biology) == ("–", "–", "–", "–", "99.50")
    assert set(others) == {"–"}
    page.click("thead button[title='Sort by Biology']")
    whole(page)
    assert page.inner_text("tr[data-position='0'] .name") == "one-dataset-only"
    page.click("thead button:has-text('Average')")
    whole(page)
    assert page.locator("tr[data-position] .name").last.inner_text() == "one-dataset-only"


def test_such_rows_are_charted_and_saved_where_they_have_a_value(open_page: Open) -> None:
    page = open_page(f"{R2MED}&view=chart&x=size&sort=average")
    assert page.locator("svg.chart .mark").count() > 100
    assert "one-dataset-only" not in page.inner_text("main")
    page = open_page(f"{R2MED}&q=insertrank")
    with page.expect_download() as download:
        page.click("button >> text=/^CSV$/")
    [row] = csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8")))
    assert (row["Average"], row["Biology"], row["Without Biology"]) == ("51.10", "", "")
