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

from r2med import load, run
from r2med.assessment.judgements.committee import pool
from r2med.assessment.review.kinds import KINDS
from r2med.assessment.review.review_book import ReviewBook, StoredReview, reviews_file
from r2med.assessment.review.review_desk import ReviewDesk
from r2med.assessment.rubrics.item import Item
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.construction.review_items import read_reviews, review_items
from r2med.data.overlays import Overlay, OverlayLabel
from r2med.evaluation.records.collection import collect
from r2med.server.http_server import bind
from r2med.server.review_app import create_review_app
from support.browser import launched
from support.by_day import some_by_day
from support.hostile import ENDLESS, SCRIPT, TURNED
from support.processes import started
from support.serving import first_line

CONTRAST = Path(__file__).parents[1] / "publication/site/contrast.js"
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
        self.serve({"passage": review_items(self.file)})

    def serve(self, items: dict[str, list[Item]], guideline: str = "") -> None:
        """Serve items of several kinds from a thread of this process."""
        book = self._stack.enter_context(ReviewBook(reviews_file(self.file)))
        desks = {kind: ReviewDesk(each, book) for kind, each in items.items()}
        app = create_review_app(desks, "candidates", guideline)
        listener = bind("127.0.0.1", 0, None)
        listener.listen()
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listener.socket],))
        thread.start()
        self._stack.callback(thread.join)
        self._stack.callback(setattr, server, "should_exit", True)
        self.url = f"{listener.url}/"

    def start_process(self, port: str = "0", *words: str | Path) -> None:
        """Serve as a person does, so that it can be killed."""
        command = ["-m", "r2med", "review", "serve", *(words or [self.file]), "--port", port]
        self.process = self._stack.enter_context(started(command))
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


@pytest.mark.slow
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


@pytest.mark.slow
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


def reach(page: Any, wanted: Any) -> None:
    """Press Tab until what a screen reader would call by this role and name has the focus."""
    for _ in range(80):
        if wanted.evaluate("element => element === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"no way by Tab to {wanted}")


@pytest.mark.slow
def test_two_people_rate_by_every_rubric_one_of_them_with_keyboard_and_accessible_names_only(desk: Desk) -> None:
    bad = f"{SCRIPT} **b** {TURNED}"
    sentences = ((f"source {bad}", f"target {bad}", f"marks {bad}"),)
    origin = {"title": bad, "url": "javascript:alert(1)", "source": bad}
    kinds = {}
    for kind, rubric in RUBRICS.items():
        texts = {each.field: f"{each.field} {bad}" for each in rubric.texts}
        more = {"sentences": sentences} if "source_text" in texts else {"origin": origin} if kind == "passage" else {}
        kinds[kind] = [Item(("SECRET", "SECRET-C"), texts, kind, **more)]  # type: ignore[arg-type]
    assert len(kinds) >= 11 and set(KINDS) < set(kinds)
    desk.serve(kinds, f"# Rules {bad}\n\n- one **bold** {SCRIPT}\n- `two` [x](javascript:alert(1))")

    ann, bo = desk.open(viewport={"width": 390, "height": 844}, color_scheme="dark"), desk.open()
    ann.click("#name")
    for page, name in ((ann, "Ann"), (bo, "Bo")):
        assert page.inner_text(".guideline li strong") == "bold"
        reach(page, page.get_by_role("textbox", name="Your name"))
        page.keyboard.type(name)
        page.keyboard.press("Enter")
        page.wait_for_selector(".passage")
    reach(bo, bo.get_by_role("switch", name="Shortcuts"))
    bo.keyboard.press("Space")  # from here on, Bo has Tab and Enter only
    for number, (kind, rubric) in enumerate(RUBRICS.items()):
        ann.locator(".kinds button").nth(number).click()
        reach(bo, bo.get_by_role("group", name="What to review").get_by_role("button").nth(number))
        bo.keyboard.press("Enter")
        for page in (ann, bo):
            page.wait_for_function(f"() => location.hash.includes('kind={kind}') && document.querySelector('.passage')")
            assert page.query_selector("main script, main img, main .text b, main a[href^='java']") is None
        shown, heard = ann.inner_text(".desk"), bo.get_by_role("main").aria_snapshot()
        assert "\\u202e" in shown and "<script>" in shown
        assert f"New {rubric.noun}" in bo.get_by_role("status").first.inner_text()
        fields = [each.field for each in rubric.texts]
        assert all(
            f"{each} " in heard for each in (("source", "target", "marks") if "source_text" in fields else fields)
        )
        assert ann.evaluate("document.documentElement.scrollWidth") <= 390
        if kind == "question":
            assert {pair: ratio for pair, ratio in ann.evaluate(CONTRAST.read_text()) if ratio < 4.5} == {}
        lowest, highest = rubric.words[0].shown, rubric.words[-1].shown
        for place, point in enumerate(rubric.points):
            scale = point.text if len(rubric.points) > 1 else "Verdict"
            for page, word in ((ann, lowest), (bo, highest)):
                button = page.get_by_role("group", name=scale, exact=True).get_by_role("button", name=word).first
                before = page.inner_text("main")
                if page is ann:
                    button.click()
                else:
                    reach(bo, button)
                    bo.keyboard.press("Enter")
                if place < len(rubric.points) - 1:
                    assert button.get_attribute("aria-pressed") == "true"
                else:
                    page.wait_for_function("before => document.querySelector('main').innerText !== before", arg=before)
            if kind == "question" and place == 1:
                ann.reload()  # answers that are not complete are kept
                ann.wait_for_selector('[aria-pressed="true"]')

    said = {(review.kind, review.annotator): review for review in (kept.review for kept in book_of(desk.file))}
    assert {kind for kind, _ in said} == set(RUBRICS)
    for (kind, name), review in said.items():
        word = RUBRICS[kind].words[0 if name == "Ann" else -1]
        assert (kind, review.verdict, set(review.answers.values()) - {word.word}) == (kind, word.decides, set())

    for kind in RUBRICS:  # each kind has its disagreement
        ann.goto(f"{desk.url}#/disagreements?name=Ann&kind={kind}")
        ann.wait_for_function(f"() => document.querySelector('.said') && location.hash.includes('kind={kind}')")
        assert "1 to settle" in ann.inner_text(".desk-bar")
        assert "Bo" not in ann.inner_text("main")


@pytest.mark.slow
def test_a_text_is_corrected_and_the_correction_is_settled_with_the_keyboard_only(desk: Desk) -> None:
    texts = {"question": "Which?", "answer": "Gout", "reasoning": "Urat crystals."}
    desk.serve({"reasoning": [Item(("q", ""), texts, "reasoning")]})
    ann, bo = desk.open("#/review?name=Ann"), desk.open("#/review?name=Bo")
    assert ann.input_value("#correction") == "Urat crystals."
    ann.focus(".correction summary")
    ann.keyboard.press("Enter")
    ann.keyboard.press("Tab")
    ann.keyboard.press("Control+A")
    ann.keyboard.type("Urate crystals.")
    ann.reload()
    ann.wait_for_selector("#correction:visible")
    assert ann.input_value("#correction") == "Urate crystals.", "an unfinished correction outlives a reload"
    press(ann, "a")
    press(bo, "a")
    assert {each.review.annotator: each.review.correction for each in book_of(desk.file)} == {
        "Ann": "Urate crystals.",
        "Bo": "",
    }
    cy = desk.open("#/disagreements?name=Cy")
    assert "Urate crystals." in cy.inner_text(".proposal")
    cy.focus(".proposal button")
    cy.keyboard.press("Enter")
    cy.keyboard.press("Escape")
    press(cy, "a")
    settled = [each.review for each in book_of(desk.file) if each.review.adjudicated]
    assert [(each.annotator, each.correction) for each in settled] == [("Cy", "Urate crystals.")]


def test_new_items_are_announced_and_shortcuts_stay_off_once_they_are_turned_off(desk: Desk) -> None:
    desk.start(ROWS)
    page = desk.open("#/review?name=Ann")
    status = page.get_by_role("status").filter(has_text="New passage")
    assert text(page) in status.inner_text()
    press(page, "a")
    assert "1 reviewed so far" in status.inner_text()
    assert text(page) in status.inner_text()
    switch = page.get_by_role("switch", name="Shortcuts")
    assert switch.get_attribute("aria-checked") == "true"
    switch.focus()
    page.keyboard.press("Space")
    assert switch.get_attribute("aria-checked") == "false"
    page.reload()
    page.wait_for_selector(".passage")
    shown = text(page)
    for key in "rj?t":
        page.keyboard.press(key)
    assert (text(page), reviewed(page), page.query_selector("dialog[open]")) == (shown, "1 reviewed", None)
    assert not page.is_visible("kbd")
    page.focus(".verdict-row .accept")
    press(page, "Enter")
    assert reviewed(page) == "2 reviewed"


def book_of(file: Path) -> list[StoredReview]:
    with ReviewBook(reviews_file(file)) as book:
        return list(book.kept().values())


@pytest.mark.slow
def test_two_people_grade_the_labels_of_a_judge_and_the_scores_follow(
    desk: Desk, r2med: Callable[..., Any], tmp_path: Path
) -> None:
    name = "demo/Biology"
    run(["bm25", "bm25(b=0)"], name, out=tmp_path / "results")
    before = r2med("compare", "--format", "json").stdout
    found = pool(collect(results=tmp_path / "results"), load(name), 1).documents
    file = tmp_path / "judged.jsonl"
    labels = [
        OverlayLabel(dataset=name, query=query, document=document, grade=1, said="3", judge="SECRET")
        for query, documents in found.items()
        for document in documents
    ]
    Overlay("judged", tuple(labels)).write(file)
    words = [file, "--results", tmp_path / "results", "--sample", "2"]
    desk.start_process("0", *words)
    phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
    entry = desk.open("")
    assert "Unsure" not in entry.inner_text("main"), "a grade has no such button"
    ann, bo = desk.open("#/review?name=Ann", **phone), desk.open("#/review?name=Bo")
    assert {pair: ratio for pair, ratio in ann.evaluate(CONTRAST.read_text()) if ratio < 4.5} == {}
    assert ann.evaluate("document.documentElement.scrollWidth") <= 390
    orders: list[list[str]] = [[], []]
    for page, grade, order in ((ann, "3", orders[0]), (bo, "1", orders[1])):
        while not page.query_selector(".done"):
            order.append(text(page))
            assert "SECRET" not in page.content()
            assert "bm25" not in page.content()
            press(page, grade)
            if len(order) == 1 and page is ann:
                desk.crash()
                desk.start_process(desk.port, *words)
    assert len(orders[0]) >= 2
    assert orders[0] == orders[1], "people label in one order"
    page = desk.open("#/disagreements?name=Cy")
    assert sorted(page.inner_text(".said").split("\n"))[:2] == ["Answers it", "Same field"]

    people = r2med("review", "export", file, "-o", "people.jsonl")
    assert f"{2 * len(orders[0])} labels of 2 reviewers" in people.stdout, people.stderr
    said = Overlay.read(tmp_path / "people.jsonl").labels
    assert {(label.reviewer, label.said, label.grade) for label in said} == {
        ("reviewer 1", "3", 1),
        ("reviewer 2", "1", 0),
    }
    both = ["--overlay", file, "--overlay", "people.jsonl"]
    while page.query_selector(".said"):
        press(page, "3")
    r2med("review", "export", file, "-o", "people.jsonl")
    assert r2med("compare", *both, "--format", "json").stdout != before
    assert r2med("compare", "--format", "json").stdout == before, "without the overlays the first scores are back"


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


@pytest.mark.slow
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


@pytest.mark.slow
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


def test_every_kind_can_be_chosen_on_a_phone(desk: Desk) -> None:
    kinds = ("passage", "question", "answer", "reasoning")
    made = {
        kind: RUBRICS[kind].item(("q", ""), {each.field: "Gout." for each in RUBRICS[kind].texts}) for kind in kinds
    }
    desk.serve({kind: [item] for kind, item in made.items() if item})
    page = desk.open("#/review?name=Ann", viewport={"width": 390, "height": 844})
    buttons = page.locator(".segmented").first.locator("button")
    assert buttons.count() == len(kinds)
    right = "(all) => Math.max(...all.map((each) => each.getBoundingClientRect().right))"
    assert buttons.evaluate_all(right) <= 390 - 16, "none is beyond the edge, where it would be cut off"


@pytest.mark.parametrize("scheme", some_by_day(["light", "dark"], 2))
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
    assert post({**body, "kind": "picture"}, **{"Content-Type": "application/json"}).status_code == 404
    [item] = review_items(desk.file)[:1]
    for said in ({"verdict": None}, {"verdict": None, "answers": {"answerable": "yes"}}):
        wrong = {**body, "item": item.token, **said}
        assert post(wrong, **{"Content-Type": "application/json"}).status_code == 422
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
    ended = r2med("review", "export", desk.file, "-o", "out.csv")
    assert (ended.returncode, ended.stdout) == (0, "1 review in out.csv\n")
    [kept] = csv.DictReader((tmp_path / "out.csv").open())
    other = {**kept, "annotator": "Bo", "verdict": "reject"}
    (tmp_path / "in.csv").write_text(",".join(other) + "\n" + ",".join(other.values()) + "\n")
    assert r2med("review", "import", desk.file, "in.csv").stdout == "1 new review from in.csv\n"
    assert r2med("review", "import", desk.file, "in.csv").stdout == "0 new reviews from in.csv\n"
    bo = desk.open("#/review?name=Bo")  # the server that runs has seen it
    assert reviewed(bo) == "1 reviewed"
