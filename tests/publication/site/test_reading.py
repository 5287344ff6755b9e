"""What a reader sees of long tables, intervals, charts and narrow screens, in a real browser."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from r2med.publication.site import make_board
from support.by_day import some_by_day

from .conftest import SCREEN, SYSTEMS, Open, unreached, whole
from .test_pages import DEMO, figures

BENCHMARK = "#/leaderboard?set=R2MED"
PHONE = {"width": 390, "height": 844}


@pytest.mark.parametrize("viewport", some_by_day([PHONE, {"width": 1000, "height": 800}, SCREEN], 3))
def test_the_head_of_a_long_table_stays_in_view(open_page: Open, viewport: dict[str, int]) -> None:
    page = open_page(BENCHMARK, viewport=viewport)
    whole(page)
    page.locator("tr[data-position='90']").scroll_into_view_if_needed()
    head = page.locator("main thead tr:last-child").bounding_box()
    above = page.locator(".top").bounding_box()["height"]
    assert above <= head["y"] + 1 and head["y"] + head["height"] < viewport["height"] / 2
    shown = "({x, y}) => document.elementFromPoint(x, y).closest('thead') !== null"
    assert page.evaluate(shown, {"x": head["x"] + 20, "y": head["y"] + head["height"] / 2})


def test_an_interval_is_taller_than_its_dot_so_that_it_is_seen_however_short(open_page: Open) -> None:
    page = open_page(DEMO)
    heights = page.evaluate(
        """() => [...document.querySelectorAll('td.main .glyph')].map((glyph) => [
             parseFloat(getComputedStyle(glyph.querySelector('.glyph-range')).strokeWidth),
             2 * glyph.querySelector('.glyph-dot').r.baseVal.value])"""
    )
    assert heights and all(interval > dot + 4 for interval, dot in heights)


def test_equal_scores_share_a_rank(open_page: Open) -> None:
    page = open_page(BENCHMARK)
    whole(page)
    ranks = page.eval_on_selector_all(".rank-number", "all => all.map((each) => each.textContent)")
    scores = figures(page, "Average")
    assert max(Counter(scores).values()) > 1
    assert [int(rank) for rank in ranks] == [1 + scores.index(score) for score in scores]


def boxes(page: Any, selector: str) -> list[tuple[float, float, float, float]]:
    """Return left, top, right and bottom of the elements of the chart."""
    get = "all => all.map((each) => each.getBoundingClientRect().toJSON())"
    found = page.eval_on_selector_all(f"svg.chart {selector}", get)
    return [(box["left"], box["top"], box["right"], box["bottom"]) for box in found]


@pytest.mark.parametrize("width", some_by_day([390, 1280], 2))
def test_the_names_in_a_chart_cover_no_point_and_no_other_name(open_page: Open, width: int) -> None:
    page = open_page(f"{BENCHMARK}&view=chart", viewport={"width": width, "height": 900})
    names = boxes(page, ".pareto-name:not(:empty)")
    points = boxes(page, ".mark")
    assert len(names) >= 3 and len(points) > 100  # published rows have a place on the axis that is shown first
    for number, (left, top, right, bottom) in enumerate(names):
        for other in [*points, *names[number + 1 :]]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] + 1 or other[3] <= top + 1


def test_every_point_of_a_chart_has_a_name_where_it_is_pointed_at_and_in_a_list(open_page: Open) -> None:
    page = open_page(f"{BENCHMARK}&view=chart")
    points = page.eval_on_selector_all("svg.chart [data-name]", "all => all.map((each) => each.dataset.name)")
    page.click("text=systems of this chart")
    listed = page.eval_on_selector_all(".points li", "all => all.map((each) => each.textContent)")
    assert sorted(listed) == sorted(points)
    agent = page.locator("svg.chart [data-name*='bm25: 1']").first
    agent.hover(force=True)
    assert page.locator("svg.chart > text.pareto-name").last.text_content() == agent.get_attribute("data-name")
    page = open_page(f"{DEMO}&view=chart&x=size")
    page.locator("svg.chart a").last.focus()
    assert page.locator("svg.chart > text.pareto-name").last.text_content()


def test_another_measure_is_no_error_where_a_set_was_never_run(open_page: Open) -> None:
    page = open_page(f"{BENCHMARK}&measure=R%4010")
    whole(page)
    assert "No system" in page.inner_text("main")  # and open_page finds no error in the console


def test_on_a_phone_names_of_stages_are_whole(open_page: Open) -> None:
    page = open_page("#/system?name=bm25", viewport=PHONE)
    assert page.locator(".stages td .name").first.bounding_box()["height"] < 30


def test_every_tab_and_every_column_can_be_reached_on_a_tablet_and_on_a_phone(open_page: Open) -> None:
    for address in (DEMO, BENCHMARK, "#/system?name=bm25"):
        page = open_page(address)
        assert {width: unreached(page, width) for width in (900, 390)} == {900: [], 390: []}


@pytest.mark.slow
@pytest.mark.parametrize("address", [DEMO, "#/system?name=bm25"])
def test_tables_can_be_scrolled_by_keyboard_and_buttons_are_large_enough(open_page: Open, address: str) -> None:
    page = open_page(address)
    whole(page)
    tables = page.eval_on_selector_all(
        ".table-wrap", "all => all.map((each) => [each.tabIndex, each.role, Boolean(each.ariaLabel)])"
    )
    assert tables and all(table == [0, "region", True] for table in tables)
    sizes = page.eval_on_selector_all(
        "main button", "all => all.map((each) => [each.offsetWidth, each.offsetHeight, each.className])"
    )
    assert [size for size in sizes if 0 < min(size[:2]) < 24] == []


def test_keys_do_nothing_in_an_explorer_without_texts(records: Path, chromium: Any, tmp_path: Path) -> None:
    page = chromium.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    index = make_board([records], tmp_path / "board", texts=False)
    page.goto(f"file://{index}#/explorer")
    page.wait_for_selector("text=This board contains no texts")
    for key in "jk[]{}cxg":
        page.keyboard.press(key)
    page.keyboard.press("t")
    page.close()
    assert faults == []


def test_the_explorer_says_who_a_and_b_are_and_keeps_them_apart(open_page: Open) -> None:
    page = open_page(f"#/explorer?a={SYSTEMS[0]}&b={SYSTEMS[0]}")
    page.wait_for_selector(".hit")
    assert page.inner_text(".who").split() == ["A", SYSTEMS[0]]
    assert page.locator(".who").bounding_box()["y"] < SCREEN["height"] / 2
    page.keyboard.press("c")
    page.wait_for_selector(".pair")
    sides = "['.picker-a', '.picker-b'].map((side) => document.querySelector(`${side} select`).value)"
    for key in ("]", "]", "[", "}", "{", "}"):
        before = page.evaluate(sides)
        page.keyboard.press(key)
        page.wait_for_function(f"(before) => String({sides}) !== before", arg=",".join(before))
        assert len(set(page.evaluate(sides))) == 2
    a, b = page.evaluate(sides)
    page.select_option(".picker-a select", b)
    page.wait_for_function(f"(swapped) => String({sides}) === swapped", arg=f"{b},{a}")
    assert page.inner_text(".who").split("\n") == [f"A {b}", f"B {a}"]


def test_the_same_documents_in_another_order_are_not_called_the_same_ranking(open_page: Open) -> None:
    page = open_page("#/explorer")
    summary = "([a, b, gold]) => pages.ranking.summary(a, b, gold, 'nDCG@10', [null, null]).textContent"
    moved = page.evaluate(summary, [[1, 2, 3], [1, 3, 2], [{"id": "d2", "a": 2, "b": 3}]])
    assert moved == "A and B have the same top 3, in another order. Relevant d2 moves from 2 to 3. "
    same = page.evaluate(summary, [[1, 2, 3], [1, 2, 3], [{"id": "d2", "a": 2, "b": 2}]])
    assert same == "A and B have the same top 3, in the same order. No relevant document moves. "


def test_the_name_of_a_relevant_document_s_line_has_what_is_seen_of_it(open_page: Open) -> None:
    page = open_page("#/explorer")
    page.wait_for_selector(".hit")
    [name, seen] = page.evaluate(
        "() => { const line = document.querySelector('summary.gold-row'); return [line.ariaLabel, line.textContent]; }"
    )
    assert name is None and "A rank" in seen
