"""The review page in a real browser: several people and tabs, reloads, crashes, hostile texts, keys, a phone."""

from __future__ import annotations

import csv
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn

from r2med.construction.review.review_book import ReviewBook, read_reviews
from r2med.construction.review.review_desk import ReviewDesk
from r2med.construction.review.review_items import review_items, reviews_file
from r2med.server.http_server import bind
from r2med.server.review_app import create_review_app
from support.browser import launched
from support.hostile import ENDLESS, SCRIPT, TURNED
from support.processes import started
from support.serving import first_line

CONTRAST = Path(__file__).parents[1] / "site" / "contrast.js"
QUESTION = "Which disease explains the rash and the loose stools?"
HOSTILE = {
    "question": f"{QUESTION} {SCRIPT}",
    "passage": f"{TURNED} {SCRIPT} {ENDLESS[:3000]}",
    "title": SCRIPT,
    "url": "javascript:document.title='hacked'",
    "answer": "<b>bold</b>",
}


class Desk:
    """A server of a table of candidates, and pages that look at it."""

    def __init__(self, folder: Path, browser: Any, stack: ExitStack) -> None:
        self.file = folder / "candidates.jsonl"
        self.faults: list[str] = []
        self.process: subprocess.Popen[str] | None = None
        self.url = ""
        self._browser = browser
        self._stack = stack

    def write(self, rows: list[dict[str, str]]) -> None:
        self.file.write_text("".join(json.dumps(row) + "\n" for row in rows))

    def start(self, rows: list[dict[str, str]]) -> None:
        """Serve the rows from a thread of this process."""
        self.write(rows)
        book = self._stack.enter_context(ReviewBook(reviews_file(self.file)))
        app = create_review_app(ReviewDesk(review_items(self.file), book), "candidates")
        listener = bind("127.0.0.1", 0, None)
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listener.socket],))
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(setattr, server, "should_exit", True)
        self.url = f"{listener.url}/"

    def start_process(self, port: str = "0") -> None:
        """Serve as a person does, so that it can be killed."""
        self.process = self._stack.enter_context(started(["-m", "r2med", "review", self.file, "--port", port]))
        self.url = first_line(self.process).split(" ")[0]

    def crash(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @property
    def port(self) -> str:
        return self.url.rstrip("/").rpartition(":")[2]

    def open(self, address: str = "", context: Any = None, **settings: Any) -> Any:
        context = context or self._stack.enter_context(self._browser.new_context(**settings))
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("request", lambda request: self.faults.append(request.url) if self.url not in request.url else None)
        page.goto(self.url + address)
        page.wait_for_selector(".passage, .enter, .done")
        return page

    def said(self) -> set[tuple[str, str, str, str]]:
        return {(each.chunk, each.annotator, each.verdict, each.comment) for each in read_reviews(self.file)}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with launched() as browser:
        yield browser


@pytest.fixture
def desk(tmp_path: Path, chromium: Any) -> Iterator[Desk]:
    with ExitStack() as stack:
        made = Desk(tmp_path, chromium, stack)
        yield made
        assert made.faults == []


def row(number: int, **more: str) -> dict[str, str]:
    passage = f"Passage {number} on the small bowel."
    return {"question_id": "SECRET-Q", "id": f"SECRET-{number}", "question": QUESTION, "passage": passage, **more}


ROWS = [row(number, answer="Coeliac disease", reasoning="Rash and stools.") for number in range(6)]


def text(page: Any) -> str:
    return str(page.inner_text(".passage .text"))


def press(page: Any, key: str) -> None:
    """Press a key that brings another passage, and wait for it."""
    page.wait_for_selector(".verdict-row button:not([disabled]), .done")
    before = page.inner_text("main")
    page.keyboard.press(key)
    page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before)


def reviewed(page: Any) -> str:
    return str(page.inner_text(".desk-bar").split("·")[1].split("\n")[0].strip())


def test_two_people_review_at_once_each_in_an_order_of_their_own_and_blindly(desk: Desk) -> None:
    desk.start(ROWS)
    ann, bo = desk.open("#/review?name=Ann"), desk.open("#/review?name=Bo")
    traffic: list[str] = []
    bo.on("response", lambda response: traffic.append(response.text()) if response.request.method == "POST" else None)
    orders: dict[str, list[str]] = {"Ann": [], "Bo": []}
    for _ in ROWS:
        for name, page, key in (("Ann", ann, "a"), ("Bo", bo, "r")):
            orders[name].append(text(page))
            assert page.query_selector('[aria-pressed="true"]') is None
            press(page, key)
    assert ann.is_visible("text=Nothing is waiting for you")
    assert sorted(orders["Ann"]) == sorted(orders["Bo"]) == [each["passage"] for each in ROWS]
    assert orders["Ann"] != orders["Bo"]
    assert {(name, verdict) for _, name, verdict, _ in desk.said()} == {("Ann", "accept"), ("Bo", "reject")}
    assert len(desk.said()) == 12
    # Nothing that was sent to Bo names an id, or Ann, or how many there are.
    shown = "".join(traffic)
    assert not any(hidden in shown for hidden in ("SECRET", "Ann", "accept", "total", "left"))
    assert "6" not in "".join(str(json.loads(each).get("reviewed")) for each in traffic[:5])


def test_a_reload_in_the_middle_loses_neither_a_verdict_nor_a_comment_that_is_being_written(desk: Desk) -> None:
    desk.start(ROWS)
    page = desk.open("#/review?name=Ann")
    press(page, "a")
    press(page, "u")
    third = text(page)
    page.keyboard.press("/")
    page.keyboard.type("not ready yet")
    page.reload()
    page.wait_for_selector(".passage")
    assert (text(page), reviewed(page)) == (third, "2 reviewed")
    assert page.input_value("#comment") == "not ready yet"
    press(page, "k")
    page.reload()
    page.wait_for_selector(".passage")
    assert page.inner_text('[aria-pressed="true"]').split() == ["Unsure", "u"]


def test_a_crash_of_the_server_loses_nothing_and_the_page_goes_on(desk: Desk) -> None:
    desk.write(ROWS)
    desk.start_process()
    page = desk.open("#/review?name=Ann")
    press(page, "a")
    desk.crash()
    page.fill("#comment", "said while it was down")
    page.keyboard.press("Escape")
    page.keyboard.press("r")
    page.wait_for_selector("text=The server does not answer")
    during = text(page)
    desk.start_process(desk.port)
    page.wait_for_function("before => document.querySelector('.passage .text').innerText !== before", arg=during)
    assert reviewed(page) == "2 reviewed"
    assert {(verdict, comment) for _, _, verdict, comment in desk.said()} == {
        ("accept", ""),
        ("reject", "said while it was down"),
    }


def test_a_verdict_that_was_never_answered_outlives_its_page(desk: Desk) -> None:
    desk.write(ROWS)
    desk.start_process()
    page = desk.open("#/review?name=Ann")
    desk.crash()
    page.keyboard.press("a")
    page.wait_for_selector("text=The server does not answer")
    page.close()
    desk.start_process(desk.port)
    again = desk.open("#/review?name=Ann", page.context)
    assert reviewed(again) == "1 reviewed"


def test_two_tabs_of_one_person_do_not_overwrite_each_other_unseen(desk: Desk) -> None:
    desk.start(ROWS)
    first = desk.open("#/review?name=Ann")
    second = desk.open("#/review?name=Ann", first.context)
    passage = text(second)
    assert passage == text(first)
    press(first, "a")
    second.keyboard.press("r")
    second.wait_for_selector("text=Another tab saved this verdict: accept")
    assert text(second) == passage
    press(second, "r")
    assert {verdict for _, _, verdict, _ in desk.said()} == {"reject"}


def test_hostile_texts_are_shown_as_texts(desk: Desk) -> None:
    desk.start([row(0, **HOSTILE)])
    page = desk.open(
        "#/review?name=%3Cscript%3Edocument.title%3D1%3C%2Fscript%3E", viewport={"width": 390, "height": 844}
    )
    assert page.title() == "Review · r2med review"
    assert "<script>" in text(page)
    assert "\\u202e" in text(page)
    assert page.inner_text(".answer") == "<b>bold</b>"
    assert page.query_selector("main script, main img, main b b, .provenance a[href]") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    press(page, "a")
    assert len(desk.said()) == 1


def test_everything_can_be_done_by_keyboard_alone(desk: Desk) -> None:
    desk.start(ROWS)
    page = desk.open()
    page.keyboard.type("Ann Example")
    page.keyboard.press("Enter")
    page.wait_for_selector(".passage")
    first = text(page)
    page.keyboard.press("/")
    page.keyboard.type("arujk / stay letters in a comment")
    page.keyboard.press("Escape")
    press(page, "a")
    press(page, "r")
    press(page, "k")
    press(page, "k")
    assert text(page) == first
    assert page.input_value("#comment") == "arujk / stay letters in a comment"
    press(page, "u")  # another mind, and on
    assert reviewed(page) == "2 reviewed"
    press(page, "j")
    page.keyboard.press("j")  # no further than the first without a verdict
    assert page.query_selector('[aria-pressed="true"]') is None
    page.keyboard.press("?")
    assert "back to your earlier verdicts" in page.inner_text("dialog")
    page.keyboard.press("Escape")
    for _ in range(20):
        if page.evaluate("document.activeElement.className") == "reject":
            break
        page.keyboard.press("Tab")
    press(page, "Enter")
    assert page.evaluate("document.activeElement.className") == "reject"
    assert {(verdict, bool(comment)) for _, _, verdict, comment in desk.said()} == {("unsure", True), ("reject", False)}


def test_disagreements_are_settled_without_names_by_who_may_see_them(desk: Desk) -> None:
    desk.start(ROWS[:2])
    ann, bo = desk.open("#/review?name=Ann"), desk.open("#/review?name=Bo")
    ann.fill("#comment", "plain to see")
    ann.keyboard.press("Escape")
    disputed = text(ann)
    press(ann, "a")
    if text(bo) != disputed:
        # Who has begun to review does not see what others say of a passage before they have said it themselves.
        press(bo, "r")
        page = desk.open("#/disagreements?name=Bo")
        assert page.is_visible("text=Nothing to settle")
    press(bo, "r")
    page = desk.open("#/disagreements?name=Cy")
    assert text(page) == disputed
    assert sorted(page.inner_text(".said").split("\n")) == ["Accepted", "Rejected", "no comment", "plain to see"]
    assert "Ann" not in page.inner_text("main")
    press(page, "r")
    assert page.is_visible("text=Nothing to settle")
    settled = [review for review in read_reviews(desk.file) if review.adjudicated]
    assert [(review.annotator, review.verdict) for review in settled] == [("Cy", "reject")]
    assert len(read_reviews(desk.file)) >= 3  # each person's own label is kept
    page.goto(f"{desk.url}#/review?name=Cy")
    page.wait_for_selector(".passage, .done")
    assert page.query_selector(".done") or text(page) != disputed


def test_two_annotators_stay_blind_and_what_they_change_after_looking_is_an_adjudication(desk: Desk) -> None:
    desk.start(ROWS)
    ann, bo = desk.open(), desk.open()
    for page, name in ((ann, "Ann"), (bo, "Bo")):
        page.fill("#name", name)
        page.click("text=Begin")
        page.wait_for_selector(".passage")
    for _ in ROWS:
        press(ann, "a")
        press(bo, "r" if text(bo) in (ROWS[0]["passage"], ROWS[1]["passage"]) else "a")
    ann.click("nav >> text=Disagreements")
    ann.wait_for_selector(".said")
    figure = ann.inner_text(".desk-bar .muted")
    assert "2 to settle · 0 settled" in ann.inner_text(".desk-bar")
    # Ann goes back to her own verdicts, and says of both what Bo said.
    for row_ in ROWS[:2]:
        ann.click("nav >> text=Review")
        ann.wait_for_selector(".done, h2:has-text('Is this passage evidence')")
        while ann.query_selector(".done") or text(ann) != row_["passage"]:
            press(ann, "k")
        assert ann.is_visible("text=Your first verdict is kept")
        press(ann, "r")
    ann.click("nav >> text=Disagreements")
    ann.wait_for_selector(".done")
    assert "0 to settle · 2 settled" in ann.inner_text(".desk-bar")
    assert ann.inner_text(".desk-bar .muted") == figure
    reviews = read_reviews(desk.file)
    assert sum(review.adjudicated for review in reviews) == 2
    assert {review.verdict for review in reviews if review.annotator == "Ann" and not review.adjudicated} == {"accept"}
    # Who comes later is shown nothing of it, and reviews all passages.
    dee = desk.open("#/disagreements?name=Dee")
    assert "0 to settle · 0 settled" in dee.inner_text(".desk-bar")
    assert dee.is_disabled("[aria-label='Back (k)']")
    dee.click("nav >> text=Review")
    dee.wait_for_selector(".passage")
    for _ in ROWS:
        press(dee, "u")
    assert reviewed(dee) == "6 reviewed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_verdicts_at_once_and_both_themes_are_readable(desk: Desk, scheme: str) -> None:
    desk.start(ROWS)
    page = desk.open("#/review?name=Ann", viewport={"width": 390, "height": 844}, color_scheme=scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    box = page.locator(".verdict-row").bounding_box()
    assert box["y"] + box["height"] <= 844
    assert all(button.bounding_box()["height"] >= 40 for button in page.query_selector_all(".verdict-row button"))
    page.click(".accept")
    page.wait_for_function("() => document.querySelector('.desk-bar').innerText.includes('1 reviewed')")
    page.click("[aria-label='Back (k)']")
    page.wait_for_selector('[aria-pressed="true"]')
    assert {pair: ratio for pair, ratio in page.evaluate(CONTRAST.read_text()) if ratio < 4.5} == {}


def test_only_this_machine_is_answered_and_only_pages_of_ours_can_speak(desk: Desk) -> None:
    desk.start(ROWS)
    url = desk.url
    body = {"name": "Ann", "item": "x", "verdict": "accept", "seen": ""}

    def post(content: Any = None, **headers: str) -> httpx.Response:
        return httpx.post(f"{url}decide", content=json.dumps(content or body), headers=headers, trust_env=False)

    assert post(Host="evil.example", **{"Content-Type": "application/json"}).status_code == 403
    assert post(**{"Content-Type": "text/plain"}).status_code == 415
    assert post(**{"Content-Type": "application/json"}).status_code == 404
    for wrong in ({"name": ""}, {"verdict": "yes"}, {"comment": "x" * 5001}, {"judge": "gpt4"}, {"name": "x" * 61}):
        assert post({**body, **wrong}, **{"Content-Type": "application/json"}).status_code == 422
    page = httpx.get(url, trust_env=False)
    assert "script-src 'self'" in page.headers["content-security-policy"]
    assert httpx.get(f"{url}assets/../review_app.py", trust_env=False).status_code == 404


def test_names_of_annotators_are_given_to_pages_of_ours_only(desk: Desk) -> None:
    desk.start(ROWS)
    press(desk.open("#/review?name=Ann"), "a")
    site = httpx.get(f"{desk.url}data/site.js", trust_env=False)
    assert "Ann" not in site.text
    assert site.headers["cross-origin-resource-policy"] == "same-origin"
    simple = httpx.post(f"{desk.url}names", content="{}", headers={"Content-Type": "text/plain"}, trust_env=False)
    assert simple.status_code == 415
    assert desk.open("#/review").is_visible("button:has-text('Ann')")


def test_reviews_go_out_and_in_by_the_command_line(desk: Desk, r2med: Callable[..., Any], tmp_path: Path) -> None:
    desk.start(ROWS)
    page = desk.open("#/review?name=Ann")
    press(page, "a")
    ended = r2med("review", desk.file, "--export", "out.csv")
    assert (ended.returncode, ended.stdout) == (0, "1 review in out.csv\n")
    [kept] = csv.DictReader((tmp_path / "out.csv").open())
    other = {**kept, "annotator": "Bo", "verdict": "reject"}
    (tmp_path / "in.csv").write_text(",".join(other) + "\n" + ",".join(other.values()) + "\n")
    assert r2med("review", desk.file, "--import", "in.csv").stdout == "1 new review from in.csv\n"
    assert r2med("review", desk.file, "--import", "in.csv").stdout == "0 new reviews from in.csv\n"
    bo = desk.open("#/review?name=Bo")  # the server that runs has seen it
    assert reviewed(bo) == "1 reviewed"
