"""POST /search: one question to one system, what each stage made of it, and what went wrong with it."""

import logging
from pathlib import Path

import pytest

from r2med.data import Corpus, load
from r2med.server import limits
from r2med.server.search_protocol import answer_of
from r2med.systems.system import System
from r2med.systems.system.question import NOTHING_FOUND
from support import chat_server as api
from support.agent_turns import taking_turns
from support.chat_models import setup
from support.chat_server import answer, hang, refuse
from support.datasets import LIVE_DOCUMENTS, MARKUP, dataset_of
from support.live_systems import app_of
from support.served_app import request, requests

HYDE, JUDGED = "hyde(some-model) → bm25", "bm25 → listwise(some-model)@3"
SHARED = ("shell.js", "formats.js", "marks.js", "parts.js", "pages.js", "base.css", "icon.svg")


@pytest.fixture
def app(chat_server, marked_keys, tmp_path):
    return app_of(HYDE, JUDGED, folder=tmp_path / "home", base_url=chat_server.address, attempts=1)


def search(app, question="a swollen knee, iron", **body):
    response = request(app, url="/search", json={"question": question, **body})
    assert response.status_code == 200, response.text
    return response.json()


def ids(answer):
    return [passage["id"] for passage in answer["passages"]]


def test_what_can_be_asked_is_listed_and_the_retriever_is_there_to_compare_with(app):
    listed = request(app, "GET", "/systems").json()
    assert listed["systems"] == [
        {"name": HYDE, "asks": True},
        {"name": JUDGED, "asks": True},
        {"name": "bm25", "asks": False},
    ]
    assert (listed["dataset"], listed["documents"], listed["questions"]) == ("small", 4, [])


def test_an_expanded_and_a_reranked_system_answer_the_same_question(app, chat_server):
    chat_server.script = [answer("bowel")]
    first = search(app, system=HYDE)
    assert (first["status"], first["generated"], ids(first)) == ("ok", ["bowel"], ["gluten"])
    assert [(stage["stage"], stage["name"], stage["calls"]) for stage in first["stages"]] == [
        ("expand", "hyde(some-model)", 1),
        ("retrieve", "bm25", 0),
    ]
    assert first["stages"][0]["completion_tokens"] > 0
    assert first["stages"][0]["dollars"] is None  # nobody knows what this LLM costs
    chat_server.script = [answer("[3] > [2] > [1]")]
    second = search(app, system=JUDGED)
    plain = search(app, system="bm25")
    assert ids(second) == ids(plain)[::-1]
    assert [passage["before"] for passage in second["passages"]] == [3, 2, 1]
    assert [passage["before"] for passage in plain["passages"]] == [None] * 3


def test_words_that_match_are_marked_by_whose_they_are(app, chat_server):
    chat_server.script = [answer("knee bowel")]
    passages = {each["id"]: each for each in search(app, "a fall on the knee", system=HYDE)["passages"]}
    text = passages["knee"]["text"]
    marked = [(text[each["start"] : each["stop"]], each["kind"]) for each in passages["knee"]["marks"]]
    assert marked == [("knee", "both"), ("fall", "query")]
    assert passages["knee"]["window"] == {"start": 0, "stop": len(text)}


def test_words_are_marked_by_the_analyser_of_the_system(tmp_path):
    dataset = dataset_of(Corpus.of([("ward", "Sturz, danach im Krankenhaus; Fieber.")]))
    app = app_of("bm25(language=de)", "bm25", folder=tmp_path / "home", dataset=dataset)
    marked = {}
    for system in ("bm25(language=de)", "bm25"):
        [passage] = search(app, "Krankenhäuser, Fieber", system=system)["passages"]
        marked[system] = [passage["text"][each["start"] : each["stop"]] for each in passage["marks"]]
    assert marked == {"bm25(language=de)": ["Krankenhaus", "Fieber"], "bm25": ["Fieber"]}


@pytest.mark.parametrize(
    ("script", "kind"),
    [(answer(""), "empty"), (refuse(500), "server"), (answer("no", finish="content_filter"), "refused")],
)
def test_an_llm_that_fails_is_a_status_and_not_a_silent_plain_search(app, chat_server, script, kind):
    chat_server.otherwise = script
    told = search(app, system=HYDE)
    assert told["status"] == "partial"
    assert told["stages"][0]["status"] == "failed"
    assert kind in " ".join(told["stages"][0]["notices"])
    assert (told["generated"], ids(told)) == ([], ids(search(app, system="bm25")))
    judged = search(app, system=JUDGED)
    assert (judged["status"], judged["stages"][1]["status"]) == ("partial", "failed")


def test_a_search_that_finds_nothing_says_so_to_programs(app):
    told = search(app, "xyzzy", system="bm25")
    assert (told["status"], told["passages"], told["problem"]) == ("ok", [], NOTHING_FOUND)


def test_an_llm_that_cannot_be_asked_at_all_is_one_line(app, chat_server):
    chat_server.otherwise = refuse(401)
    told = search(app, system=HYDE)
    assert (told["status"], told["passages"]) == ("failed", [])
    assert "401" in told["problem"] and "\n" not in told["problem"]


def test_an_answer_that_takes_too_long_is_given_up_and_frees_its_thread(
    chat_server, marked_keys, tmp_path, monkeypatch
):
    monkeypatch.setattr(limits, "MAX_ANSWERS", 1)
    monkeypatch.setattr(limits, "ANSWER_SECONDS", 0.5)
    app = app_of(HYDE, folder=tmp_path, base_url=chat_server.address, attempts=1, deadline=1)
    chat_server.otherwise = hang
    assert search(app, system=HYDE)["problem"] == "no answer within 0.5 seconds"


@pytest.mark.parametrize("fault", ["import sys; sys.exit('secret internals')", "raise ValueError('secret internals')"])
def test_a_failure_of_the_code_names_no_internals(fault, tmp_path, monkeypatch, caplog):
    (tmp_path / "broken_reranker.py").write_text(
        "class Broken:\n    revision = '1'\n    def predict(self, pairs):\n"
        f"        if pairs[0][0] == 'warm up': return [0.0]\n        {fault}\n"
    )
    monkeypatch.chdir(tmp_path)
    app = app_of("bm25 → py:broken_reranker:Broken", folder=tmp_path / "home")
    with caplog.at_level(logging.WARNING):
        told = search(app)
    assert (told["status"], told["problem"]) == ("failed", "the search failed; the server's log says why")
    assert "secret internals" in caplog.text


def test_questions_that_come_at_once_are_answered_each_for_itself(app, chat_server):
    chat_server.otherwise = answer("bowel", delay=0.2)
    names = [HYDE, "bm25", HYDE, JUDGED, "bm25"]
    calls = [
        {"method": "POST", "url": "/search", "json": {"question": "iron or a fall", "system": name}} for name in names
    ]
    answers = [response.json() for response in requests(app, *calls)]
    assert [told["system"] for told in answers] == names
    assert answers[0]["passages"] == answers[2]["passages"]
    assert sum("bowel" in told["generated"] for told in answers) == 2
    assert len(chat_server.requests) == 2  # one for HyDE, whoever asked first, and one for the order


def test_more_questions_than_threads_are_refused(chat_server, marked_keys, tmp_path, monkeypatch):
    chat_server.otherwise = answer("bowel", delay=0.5)
    monkeypatch.setattr(limits, "MAX_ANSWERS", 1)
    app = app_of(HYDE, folder=tmp_path, base_url=chat_server.address)
    calls = [{"method": "POST", "url": "/search", "json": {"question": f"iron {number}"}} for number in range(3)]
    statuses = [response.status_code for response in requests(app, *calls)]
    assert sorted(statuses) == [200, 503, 503]


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({}, 422, "question: this field is needed"),
        ([], 422, 'an object such as {"question"'),
        ({"question": " "}, 422, "question: it is empty"),
        ({"question": "x" * 20_001}, 422, "question: 20,001 characters"),
        ({"question": "iron", "k": 0}, 422, "k: it must be from 1 to 1,000"),
        ({"question": "iron", "system": "bm26"}, 422, "system: this server has no such system"),
        ({"question": 7}, 422, "question"),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused_in_one_line(app, body, status, says):
    response = request(app, url="/search", json=body)
    assert response.status_code == status
    assert says in response.json()["detail"]


def test_a_page_of_another_site_cannot_ask(app, chat_server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        refused = request(app, url="/search", content=b'{"question": "iron"}', headers={"Content-Type": kind})
        assert refused.status_code == 415
    assert not chat_server.requests


def test_hostile_text_comes_back_as_it_is_and_marks_nothing_else(app):
    [passage] = [each for each in search(app, MARKUP, system="bm25")["passages"] if each["id"] == MARKUP]
    assert passage["text"] == dict(LIVE_DOCUMENTS)[MARKUP]
    assert all(0 <= each["start"] < each["stop"] <= len(passage["text"]) for each in passage["marks"])


@pytest.mark.parametrize("name", ["", *(f"assets/{name}" for name in ("search.js", "search.css", *SHARED))])
def test_the_page_is_of_files_of_its_own(app, name):
    response = request(app, "GET", f"/{name}")
    assert response.status_code == 200
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    for word in ("http:", "https:", "innerHTML", "style="):
        assert word not in response.text or name.endswith(SHARED)


@pytest.mark.parametrize("name", ["rows.js", "..%2fsearch.html", "../search_protocol.py", "search.html/x"])
def test_no_other_file_is_served(app, name):
    assert request(app, "GET", f"/assets/{name}").status_code == 404


@pytest.mark.usefixtures("marked_keys")
def test_a_live_system_answers_a_question_with_the_ranking_of_the_agent(tmp_path: Path) -> None:
    with api.serve(taking_turns("native")) as server:
        runtime = setup(server, tmp_path)
        live = System.parse("agent(any)", runtime).live(load("demo/Biology", runtime.store))
        given = answer_of(live, "Why is the sky dark?", 5)
    assert given.status == "ok" and len(given.turns) == 4
    assert [turn.query for turn in given.turns] == ["light and rods", "", "skin and water", ""]
    chosen = given.turns[0].documents[1], given.turns[2].documents[1]
    assert [passage.id for passage in given.passages][:2] == list(chosen) and len(given.passages) == 5
