"""The board of agents that answer: the funnel of a system, and the story of a question in the explorer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import r2med
from r2med.evaluation.records.answer_collection import AnswerCollection, collect_answers
from r2med.evaluation.records.answer_words import SEARCHED
from r2med.evaluation.records.collection import collect
from r2med.evaluation.records.repeated_answers import mean_of_repeats
from r2med.publication.site import make_board
from r2med.publication.site.agent_funnels import funnels_value
from support.by_day import some_by_day
from support.searching_agents import scripted_runtime, village

from .conftest import SCREEN, Open
from .test_pages import CONTRAST
from .test_site import value

AGENT = "agent(script, answers=yes, turns=8, calls=tags)"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("funnel")
    with scripted_runtime(place) as opened, pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(place / "home"))
        data = village(place / "set")
        asked = {"data": data, "conditions": "searched", "out": place / "o"}
        r2med.answer("agent(script, calls=tags, turns=8)", setup=opened, **asked)
        return make_board([place / "o"], place / "board", data=[data]).parent


def test_the_data_file_counts_relevant_documents_at_every_step(site: Path) -> None:
    (funnel,) = value(site, "funnels")
    counts = {step["name"]: step["documents"] for step in funnel["steps"]}
    lost = {step["name"]: step["lost"] for step in funnel["steps"]}
    assert lost["returned"] == 7 and sum(lost.values()) == 33 - counts["kept"], "losses add up to what is missing"
    assert (funnel["relevant"], counts) == (33, {"returned": 26, "shown": 26, "opened": 2, "cited": 5, "kept": 6})
    finder = next(query for query in funnel["queries"] if query["id"] == "finder")
    assert finder == {"id": "finder", "relevant": 3, "right": True, "confidence": 0.9,
                      "steps": {"returned": 3, "shown": 3, "opened": 2, "cited": 2, "kept": 3}}  # fmt: skip
    calibration = funnel["calibration"]
    assert funnel["runs"] == 1 and calibration["too_sure"]["value"] < 0
    assert calibration["too_sure"]["low"] is None and calibration["brier"]["low"] is None, "fewer than 30 answers"


def test_with_several_runs_every_figure_is_a_mean_over_them(site: Path) -> None:
    (kept,) = collect_answers([site.parent / "o"])
    rows = {
        query: {**row, "kept-recall": 0.0, "undecided": 0.0} for query, row in kept.record.per_query[SEARCHED].items()
    }
    other = kept.record.model_copy(update={"per_query": {SEARCHED: rows}, "searching": {"searches": 0.0}})
    runs = (kept.record, other)
    stored = AnswerCollection((replace(kept, record=mean_of_repeats(runs), repeats=runs),))
    one, two = (
        funnels_value(each, collect([site.parent / "o"]), ["set"])[0] for each in (AnswerCollection((kept,)), stored)
    )
    assert (one["runs"], two["runs"]) == (1, 2)
    assert [step["documents"] for step in one["steps"]][:4] == [step["documents"] for step in two["steps"]][:4]
    assert two["steps"][4]["documents"] == one["steps"][4]["documents"] / 2
    assert two["steps"][4]["recall"]["value"] == pytest.approx(one["steps"][4]["recall"]["value"] / 2)
    assert two["searching"] == {"searches": one["searching"]["searches"] / 2}
    assert two["calibration"]["answers"] > one["calibration"]["answers"] and "low" in two["calibration"]["too_sure"]
    assert two["calibration"]["too_sure"]["low"] is None


@pytest.mark.parametrize(("viewport", "scheme"), some_by_day([(PHONE, "dark"), (PHONE, "light"), (SCREEN, "dark")], 3))
def test_the_funnel_fits_the_screen_and_can_be_read(open_page: Open, viewport: dict[str, int], scheme: str) -> None:
    page = open_page(f"#/funnel?{urlencode({'name': AGENT})}", viewport, scheme)
    rows = page.locator("table.funnel tbody tr").all_inner_texts()
    assert len(rows) == 6 and "33" in rows[0] and "−7" in rows[1]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    whole = "element => element.scrollWidth <= element.parentElement.clientWidth"
    assert page.locator("table.funnel").evaluate(whole), "no column is cut off"
    assert {pair: ratio for pair, ratio in dict(page.evaluate(CONTRAST.read_text())).items() if ratio < 4.5} == {}


def story(page: Any) -> Any:
    page.wait_for_selector("details.story")
    page.keyboard.press("n")
    page.wait_for_selector("details.story dl.turn[tabindex]")
    return page.locator("details.story")


def test_the_story_of_a_question_opens_and_moves_by_keys_and_marks_relevant_documents(open_page: Open) -> None:
    page = open_page(f"#/explorer?{urlencode({'a': AGENT, 'data': 'set', 'q': 'finder'})}", PHONE)
    told = story(page)
    assert told.locator("table.fate tbody tr").count() == 3
    page.keyboard.press("n")
    assert "finder evidence" in page.evaluate("document.activeElement.innerText")
    assert told.locator("details.result[open]").count() == 0, "results are folded"
    page.keyboard.press("o")
    assert page.locator("dl.turn:focus details.result[open]").count() == 1
    page.keyboard.press("n")
    assert "get_document" in page.evaluate("document.activeElement.innerText")
    page.keyboard.press("p")
    assert "finder evidence" in page.evaluate("document.activeElement.innerText")
    assert told.locator(".chip.gold").count() >= 3
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_page_says_why_fewer_failures_are_counted_than_conversations_ended_early(open_page: Open) -> None:
    failed = open_page(f"#/system?{urlencode({'name': AGENT})}").locator("section", has_text="ended early").inner_text()
    assert "no_marker\n4" in failed and "nothing was left: 1." in failed


def test_the_page_of_the_system_leads_to_its_funnel(open_page: Open) -> None:
    page = open_page(f"#/system?{urlencode({'name': AGENT})}")
    page.click("text=Where it loses the evidence")
    page.wait_for_selector("table.funnel")
