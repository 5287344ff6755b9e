"""The board of agents that answer: where they lose relevant documents, and the story of a question in the explorer."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import r2med
from r2med.publication.site import make_board
from support.by_day import some_by_day
from support.searching_agents import scripted_runtime, village

from .conftest import SCREEN, Open
from .test_pages import CONTRAST
from .test_site import value

AGENT = "agent(script, answers=yes, turns=8, calls=tags)"
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("agents")
    with scripted_runtime(place) as opened, pytest.MonkeyPatch.context() as patch:
        patch.setenv("R2MED_HOME", str(place / "home"))
        data = village(place / "set")
        asked = {"data": data, "conditions": "searched", "out": place / "o"}
        r2med.answer("agent(script, calls=tags, turns=8)", judge="judge", setup=opened, **asked)
        return make_board([place / "o"], place / "board", data=[data]).parent


@pytest.mark.parametrize(("viewport", "scheme"), some_by_day([(PHONE, "dark"), (PHONE, "light"), (SCREEN, "dark")], 3))
def test_the_page_of_answers_says_how_far_relevant_documents_came(
    open_page: Open, site: Path, viewport: dict[str, int], scheme: str
) -> None:
    page = open_page("#/answers", viewport, scheme)
    table = page.locator("section", has_text="Where agents lose relevant documents").locator("table")
    assert table.locator("thead").inner_text().split() == [
        *("Agent", "Questions", "Returned", "Shown", "Opened", "Cited", "Kept")
    ]
    [view] = value(site, "answers")
    scores = view["rows"][0]["scores"]["searched"]
    steps = ("returned", "shown", "opened", "cited", "kept")
    shown = [cell.split()[0] for cell in table.locator("tbody td").all_inner_texts()]
    assert shown[1:] == [f"{100 * scores[f'{step}-recall']['value']:.2f}" for step in steps]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
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


def test_the_page_of_the_system_leads_to_its_answers(open_page: Open) -> None:
    page = open_page(f"#/system?{urlencode({'name': AGENT})}")
    page.click("text=how well")
    page.wait_for_selector("text=Where agents lose relevant documents")
