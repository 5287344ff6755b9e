"""The board in a real browser, opened from disk: leaderboard, pages of systems."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from r2med.evaluation.measure import DEFAULT_MEASURES
from r2med.publication.leaderboard.published import published
from support.by_day import some_by_day

from .conftest import DATASETS, HOSTILE, SYSTEMS, Open, read, whole

CONTRAST = Path(__file__).with_name("contrast.js")
DEMO = "#/leaderboard?set=demo"


def names(page: Any) -> list[str]:
    """Return the names of all rows; those below the screen are drawn last."""
    whole(page)
    return list(page.eval_on_selector_all("tr[data-position] th .name", "all => all.map((name) => name.textContent)"))


def figures(page: Any, column: str) -> list[str]:
    """Return the figures of a column, down the rows."""
    heads = page.eval_on_selector_all("thead tr:last-child th", "all => all.map((head) => head.textContent)")
    number = [head.strip(" ↓↑") for head in heads].index(column)
    get = "(all, number) => all.map((row) => row.children[number].textContent.trim())"
    return list(page.eval_on_selector_all("tr[data-position]", get, number))


def test_systems_are_sorted_by_any_column_and_show_what_their_records_have(open_page: Open, records: Path) -> None:
    page = open_page(DEMO)
    assert names(page)[0] == "hyde(author) → bm25"
    page.click("thead button:has-text('Bio')")
    for system in SYSTEMS:
        figure = f"{100 * read(records, system, 'demo/Biology').mean['nDCG@10']:.2f}"
        assert figures(page, "Bio")[names(page).index(system)] == figure
    page.click("thead [aria-sort=descending] button")
    shown = [float(figure) for figure in figures(page, "Bio") if figure != "–"]
    assert shown == sorted(shown)


def test_published_rows_stand_among_ours_and_say_that_they_are_placed_by_value(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=R2MED")
    assert len(names(page)) == len(published())
    assert figures(page, "Average")[0] == f"{max(row.average for row in published()):.2f}"
    assert page.query_selector("tr.published .rank small").inner_text() == "by value"
    page.select_option("label:has-text('Kind') select", "agent")
    whole(page)
    assert set(
        page.eval_on_selector_all("tr.published th small", "all => all.map((e) => e.textContent.split(' · ')[0])")
    ) == {"agent"}


def test_an_address_holds_the_whole_view_and_can_be_shared(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=R2MED")
    page.fill("input[type=search]", "hyde nv")
    page.select_option("label:has-text('LLM') select", "gpt4")
    page.click("thead button:has-text('Diag')")
    page.click("thead [aria-sort=descending] button")
    before = names(page)
    assert before
    shared = open_page(page.evaluate("location.hash"))
    assert names(shared) == before
    assert shared.input_value("input[type=search]") == "hyde nv"
    assert shared.query_selector("[aria-sort=ascending]").inner_text().startswith("Diag")
    shared.click("text=Show all")
    assert len(names(shared)) == len(published())


def test_any_measure_is_recomputed_from_gold_ranks_as_python_computes_it(open_page: Open, records: Path) -> None:
    page = open_page(DEMO)
    for measure in ("nDCG@5", "R@100", "P@3", "MAP@10", "MRR"):
        page.goto(page.url.split("#")[0] + f"{DEMO}&measure={quote(measure)}")
        page.wait_for_selector(f".eyebrow:has-text('{measure}')")
        order = names(page)
        for column, dataset in zip(("Bio", "Diag", "PMC"), DATASETS, strict=True):
            shown = figures(page, column)
            for system in SYSTEMS:
                assert shown[order.index(system)] == f"{100 * read(records, system, dataset).mean[measure]:.2f}"


def test_the_measures_of_single_queries_are_those_of_the_record(open_page: Open, records: Path) -> None:
    page = open_page(DEMO)
    number = page.evaluate("pages.load('gold/8').then((gold) => gold.queries.length)")
    record = read(records, "bm25", "demo/Biology")
    assert number == len(record.per_query)
    computed = page.evaluate(
        "(all) => pages.load('gold/8').then((gold) => all.map((each) => pages.measure.queries(each, gold, 0)))",
        [str(measure) for measure in DEFAULT_MEASURES],
    )
    for measure, values in zip(DEFAULT_MEASURES, computed, strict=True):
        expected = [scores[str(measure)] for scores in record.per_query.values()]
        assert values == pytest.approx(expected, abs=1e-12)


def test_everything_can_be_reached_with_the_keyboard_alone(open_page: Open) -> None:
    page = open_page(DEMO)
    press = page.keyboard.press
    press("?")
    assert page.is_visible("dialog[open] >> text=next system")
    press("Escape")
    press("/")
    page.keyboard.type("lucene")
    press("Escape")
    assert names(page) == ["bm25(scorer=lucene)"]
    press("j")
    press("o")
    page.wait_for_selector(".details pre")
    press("Enter")
    page.wait_for_selector("h1 >> text=bm25(scorer=lucene)")
    press("[")
    page.wait_for_selector("h1 >> text=/^bm25$/")


def test_two_systems_are_sent_to_the_explorer_by_key(open_page: Open) -> None:
    page = open_page(f"{DEMO}&q=bm25")
    page.wait_for_selector("main table tbody tr")
    for key in ("j", "c", "j", "c"):
        page.keyboard.press(key)
    page.wait_for_function(
        r"() => /^#\/explorer\?.*a=.*&b=/.test(location.hash)"
    )  # the explorer adds the query it shows


def contrast(page: Any) -> dict[str, float]:
    """Return the contrast of every distinct pair of text and background colours on a page, by WCAG's formula."""
    return dict(page.evaluate(CONTRAST.read_text()))


@pytest.mark.parametrize("scheme", some_by_day(["dark", "light"], 2))
def test_both_themes_are_readable_on_every_page(open_page: Open, scheme: str) -> None:
    page = open_page(DEMO, color_scheme=scheme)
    assert page.get_attribute("html", "data-theme") == scheme
    for address in ("#/leaderboard?set=R2MED", "#/system?name=bm25"):
        page.goto(page.url.split("#")[0] + address)
        page.wait_for_selector("main table")
        assert {pair: ratio for pair, ratio in contrast(page).items() if ratio < 4.5} == {}
    page.keyboard.press("t")
    assert page.get_attribute("html", "data-theme") != scheme


def test_a_chart_is_not_wider_than_a_phone(open_page: Open) -> None:
    page = open_page("#/leaderboard?set=R2MED&view=chart&x=size", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_the_view_is_downloaded_in_three_formats(open_page: Open) -> None:
    page = open_page(f"{DEMO}&q=lucene")
    files = {}
    for label in ("CSV", "JSON", "Markdown"):
        with page.expect_download() as download:
            page.click(f"button >> text=/^{label}$/")
        files[label] = Path(download.value.path()).read_text(encoding="utf-8")
    [row] = csv.DictReader(io.StringIO(files["CSV"]))
    assert row["system"] == "bm25(scorer=lucene)"
    [entry] = json.loads(files["JSON"])["rows"]
    values = {each["column"]: each["value"] for each in entry["values"]}
    assert f"{100 * values['demo/Biology']:.2f}" == row["demo/Biology"]
    assert row["demo/Biology"] in files["Markdown"]


def test_the_chart_has_a_point_for_each_system_and_marks_those_that_none_beats(open_page: Open) -> None:
    page = open_page(f"{DEMO}&view=chart&x=size")
    assert len(page.query_selector_all("svg.chart .mark")) == 3
    front = page.evaluate("pages.chart.pareto([{x: 1, y: 5}, {x: 2, y: 4}, {x: 3, y: 7}, {x: 0, y: 1}, {x: 3, y: 6}])")
    assert [(point["x"], point["y"]) for point in front] == [(0, 1), (1, 5), (3, 7)]


def test_a_system_has_a_page_with_scores_slices_costs_and_its_command(open_page: Open, records: Path) -> None:
    page = open_page("#/system?name=" + quote(SYSTEMS[2]))
    text = page.inner_text("main")
    for dataset in DATASETS:
        assert f"{100 * read(records, SYSTEMS[2], dataset).mean['nDCG@10']:.2f}" in text
    assert "By task" in text and "By length of the query" in text
    assert "There were no failures." in text
    # A short list of facts beside a long one keeps its lines together.
    assert set(
        page.eval_on_selector_all("dl.facts", "all => all.map(each => getComputedStyle(each).alignContent)")
    ) == {"start"}
    assert "r2med run 'hyde(author) → bm25' --data demo/Biology,demo/MedQA-Diag,demo/PMC-Clinical" in text


def test_a_system_page_without_slices_has_no_word_in_their_place(open_page: Open) -> None:
    page = open_page(DEMO)
    without = "async () => { const system = { ...(await pages.load('system/0')), slices: [[], [], []] }; {SHOW} }"
    show = "pages.load = () => Promise.resolve(system); pages.go('system', { name: 'bm25' })"
    page.evaluate(without.replace("{SHOW}", show))
    page.wait_for_selector("text=Run it again")
    assert "Where it is strong and weak" not in page.inner_text("main")
    loose = "[...document.querySelector('main > div').childNodes].filter((each) => each.nodeType === Node.TEXT_NODE)"
    assert page.evaluate(f"{loose}.map((each) => each.textContent).join('')") == ""


def test_hostile_names_are_shown_as_text_and_do_nothing(open_page: Open) -> None:
    page = open_page(f"{DEMO}&q=script")
    assert names(page) == [HOSTILE.replace("\u202e", "\\u202e")]
    page.click(".toggle")
    page.wait_for_selector(".details pre")
    page.click("tr[data-position] a")
    page.wait_for_selector("h1 >> text=window.harmed")
    assert page.evaluate("window.harmed") is None
    assert page.evaluate("({}).x") is None


def test_a_system_whose_llm_is_of_the_family_of_the_judge_is_flagged(open_page: Open) -> None:
    page = open_page(DEMO)
    chip = page.locator(".chip.bad", has_text="judge’s own family")
    assert chip.count() == 1
    assert "window.harmed" in chip.locator("xpath=ancestor::tr").inner_text()
    assert chip.get_attribute("title").endswith("judged the documents of demo/PMC-Clinical")


def test_what_recorded_texts_took_is_unknown_and_they_are_not_on_the_line(open_page: Open) -> None:
    page = open_page("#/system?name=" + quote(SYSTEMS[2]))
    assert "free" not in page.inner_text(".figures") and page.inner_text(".figures").count("unknown") == 2
    assert page.inner_text("tr.ours:has-text('Expand')").split()[-5:-1] == ["unknown"] * 4
    page = open_page(f"{DEMO}&view=chart&x=seconds")
    assert page.locator("svg.chart .mark").count() == 2
    assert "the cost of recorded texts is not known" in page.inner_text("main")
    page = open_page(f"{DEMO}&view=chart&x=size")
    line, best = page.get_attribute(".pareto", "d"), page.locator("svg.chart a", has_text="hyde(author)")
    height = best.locator("g").get_attribute("transform").split()[1].rstrip(")")
    assert line and f" {height}" not in line and f"V{height}" not in line
