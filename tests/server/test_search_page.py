"""`r2med serve` with systems that ask an LLM, as a person uses it: the command, a browser, a stop."""

import threading
from pathlib import Path

import pytest

from r2med.systems.system.question import NOTHING_FOUND
from support.browser import launched
from support.chat_server import answer, hang, refuse
from support.datasets import LIVE_DOCUMENTS, MARKUP, write_jsonl
from support.processes import wait_for
from support.serving import serving

HYDE = "hyde(some-model) → bm25"
QUESTION = "a swollen knee, iron"


@pytest.fixture
def corpus_alone(tmp_path: Path) -> Path:
    write_jsonl(tmp_path / "notes" / "corpus.jsonl", [{"id": name, "text": text} for name, text in LIVE_DOCUMENTS])
    return tmp_path / "notes"


def scratch(home: Path) -> list[Path]:
    return list((home / "scratch").glob("*/*"))


def test_a_corpus_alone_is_served_and_nothing_of_a_question_stays(chat_server, marked_keys, corpus_alone, tmp_path):
    home = tmp_path / "home"
    arguments = ("--system", HYDE, "--base-url", chat_server.address)
    with serving(corpus_alone, *arguments, R2MED_HOME=home) as server, server.client() as http:
        chat_server.otherwise = answer("bowel")
        told = http.post("/search", json={"question": QUESTION}).json()
        assert [passage["id"] for passage in told["passages"]] == ["gluten"]
        again = http.post("/search", json={"question": QUESTION}).json()
        assert again["generated"] == ["bowel"]
        assert len(chat_server.requests) == 1
        assert http.post("/retrieve", json={"queries": ["bowel"], "topk": 1}).json() == {
            "result": [[{"id": "gluten", "contents": f"\n{dict(LIVE_DOCUMENTS)['gluten']}"}]]
        }
        assert scratch(home)
        assert server.stop()[0] == 0
    assert not scratch(home)
    assert not (home / "journal").exists()
    assert not (home / "run").exists()


def test_a_stopped_server_does_not_wait_for_an_llm_that_hangs(chat_server, marked_keys, corpus_alone, tmp_path):
    home = tmp_path / "home"
    chat_server.otherwise = hang
    arguments = ("--system", HYDE, "--base-url", chat_server.address)
    with serving(corpus_alone, *arguments, limits={"GRACE_SECONDS": 0}, R2MED_HOME=home) as server:
        answers = []

        def ask() -> None:
            with server.client() as http:
                answers.append(http.post("/search", json={"question": QUESTION}))

        asking = threading.Thread(target=ask)
        asking.start()
        wait_for(lambda: bool(chat_server.requests))
        code, written = server.stop()
        asking.join()
    assert (code, "Traceback" in written) == (0, False)
    assert [response.status_code for response in answers] == [503]
    assert not scratch(home)


def test_a_search_by_words_has_no_marks_of_generated_text_and_says_if_nothing_was_found(corpus_alone, tmp_path):
    systems = ("--system", "bm25", "--system", "rm3 → bm25")
    with serving(corpus_alone, *systems, R2MED_HOME=tmp_path / "home") as server, launched() as browser:
        page = browser.new_page()
        page.goto(f"{server.url}/")
        page.wait_for_selector("#first option", state="attached")
        page.fill("#question", "xyzzy")
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer .empty")
        assert page.inner_text(".answer .empty") == NOTHING_FOUND
        assert page.is_visible("#legend") and not page.is_visible("#legend-generated")
        page.select_option("#first", "rm3 → bm25")
        page.fill("#question", QUESTION)
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer .passages")
        assert page.is_visible("#legend-generated"), "words that feedback added are marked too"
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        assert page.is_visible("dialog[open] >> text=write a question")


@pytest.mark.slow
def test_two_systems_stand_side_by_side_in_a_browser(chat_server, marked_keys, corpus_alone, tmp_path):
    chat_server.otherwise = answer(f"A bowel, and {MARKUP}.")
    reranked = "bm25 → listwise(some-model)@3"
    arguments = ("--system", HYDE, "--system", reranked, "--base-url", chat_server.address)
    faults: list[str] = []
    with serving(corpus_alone, *arguments, R2MED_HOME=tmp_path / "home") as server, launched() as browser:
        page = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark")
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("request", lambda sent: None if sent.url.startswith(server.url) else faults.append(sent.url))
        page.goto(f"{server.url}/")
        page.wait_for_selector("#second option:nth-child(4)", state="attached")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"
        page.keyboard.type(QUESTION)  # the question has the focus
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer:nth-child(2) .passages .chip.other:visible")
        one, two = page.query_selector_all(".answer")
        assert MARKUP.partition("\u202e")[0] in one.query_selector(".wrote").inner_text()
        assert "hyde(some-model)" in one.query_selector("table").inner_text()
        assert "no usable order" in two.query_selector(".problem").inner_text()  # what it wrote is no order
        assert {mark.inner_text() for mark in two.query_selector_all("mark.query")} >= {"swollen", "knee"}
        assert one.query_selector("mark.generated")
        assert page.is_visible("#legend-generated")
        # What came from data is text: nothing of it became an element, ran, or turned the reading order of a name.
        assert page.query_selector("main img") is None
        assert page.evaluate("window.harmed === undefined")
        assert "\\u202e" in page.query_selector(".facts-line .name >> text=onerror").inner_text()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.keyboard.press("Escape")
        page.keyboard.press("t")
        assert page.evaluate("document.documentElement.dataset.theme") == "light"
        chat_server.otherwise = refuse(401)
        page.keyboard.press("/")
        page.keyboard.type(" and bread")
        page.keyboard.press("Enter")
        page.wait_for_selector(".answer:nth-child(1) .problem >> text=401")
        page.select_option("#first", "bm25")
        page.select_option("#second", "")
        page.click("#ask button.primary")
        page.wait_for_selector(".answer:nth-child(2)", state="detached")
        page.wait_for_selector(".passages li")
        assert not [chip for chip in page.query_selector_all(".chip") if chip.is_visible() and not chip.inner_text()]
    assert faults == []
