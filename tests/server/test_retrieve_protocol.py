"""The request and the response of Search-R1's retrieval server, to the letter; a bad request is a 4xx of one line."""

import json

import pytest

from r2med.data import Query, load
from r2med.server.http_app import create_app
from r2med.server.retrieve_protocol import write_response
from r2med.server.served_corpus import ServedData
from r2med.systems.agents.agent_state import Hit
from support.agents import agent, scripted
from support.served_app import request
from support.serving import serving


@pytest.fixture(scope="module")
def app(served):
    return create_app(ServedData(served))


def ask(app, **body):
    answer = request(app, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    return answer.json()


def test_with_scores_each_document_stands_beside_its_score(app):
    answer = ask(app, queries=["coeliac disease", "iron"], topk=3, return_scores=True)
    assert list(answer) == ["result"]
    coeliac, iron = answer["result"]
    assert [hit["document"]["id"] for hit in coeliac] == ["gluten", "titled"]
    assert {hit["document"]["id"] for hit in iron} == {"titled", "marked"}
    for hit in coeliac + iron:
        assert list(hit) == ["document", "score"]
        assert list(hit["document"]) == ["id", "contents"]
        assert isinstance(hit["score"], float) and hit["score"] > 0
    assert coeliac[0]["score"] >= coeliac[1]["score"]


def test_without_scores_the_documents_stand_alone(app):
    scored = ask(app, queries=["coeliac disease"], topk=3, return_scores=True)["result"]
    assert ask(app, queries=["coeliac disease"], topk=3, return_scores=False)["result"] == [
        [hit["document"] for hit in hits] for hits in scored
    ]


def test_topk_limits_the_documents_of_a_query_and_is_three_by_default(app):
    assert len(ask(app, queries=["coeliac iron"], topk=1)["result"][0]) == 1
    every = ask(app, queries=["in iron coeliac ärzte one"], topk=4)["result"][0]
    assert len(every) == 4
    for setting in ({}, {"topk": None}):
        assert ask(app, queries=["in iron coeliac ärzte one"], **setting)["result"][0] == every[:3]


def test_scores_are_left_out_by_default(app):
    assert set(ask(app, queries=["iron"])["result"][0][0]) == {"id", "contents"}


def test_no_query_has_no_result_and_a_query_without_matches_has_an_empty_list(app):
    assert ask(app, queries=[]) == {"result": []}
    assert ask(app, queries=["zebra", "???", "iron"], topk=1)["result"][:2] == [[], []]


def test_a_text_of_several_lines_brings_its_title_and_one_of_a_single_line_gets_an_empty_one(app):
    [[titled]] = ask(app, queries=["many causes"], topk=1)["result"]
    assert titled["contents"] == "Iron deficiency\nIron deficiency has many causes.\nCoeliac disease is one."
    [[single]] = ask(app, queries=["gluten"], topk=1)["result"]
    assert single["contents"] == "\nGluten harms the small bowel in coeliac disease."


def test_every_character_of_a_document_arrives(app):
    [[umlauts]] = ask(app, queries=["ärzte"], topk=1)["result"]
    assert umlauts == {"id": "ärzte", "contents": "\nÄrzte und 漢字 und 😀 in one line."}
    [[marked]] = ask(app, queries=["quoted"], topk=1)["result"]
    assert marked["contents"] == '\n<script>alert("1")</script> "quoted" iron\tand\u2028separators'


def test_unknown_keys_are_ignored(app):
    assert ask(app, queries=["iron"], topk=1, user="agent 7") == ask(app, queries=["iron"], topk=1)


def test_a_score_that_is_no_number_is_never_sent():
    with pytest.raises(ValueError):
        write_response([[Hit("d", "\ntext", float("nan"))]], scores=True)


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "line 1, column 2"),
        (b'{"queries": ["iron"],}', 400, "not JSON"),
        (b'{"queries": ["\xff"]}', 400, "not UTF-8: byte 14"),
        ('{"queries": ["iron"]}'.encode("utf-16"), 400, "not UTF-8"),
        (b"[" * 90_000, 400, "nested too deeply"),
        (b'{"queries": ' + b"[" * 40_000 + b"]" * 40_000 + b"}", 400, "nested too deeply"),
        (b'{"queries": ["iron"], "topk": NaN}', 400, "no NaN"),
        (b'{"queries": ["iron"], "topk": -Infinity}', 400, "no -Infinity"),
        (b'{"queries": ["iron"], "topk": ' + b"9" * 5000 + b"}", 400, "not JSON"),
        (b"null", 422, "must be an object such as"),
        (b'["iron"]', 422, "must be an object such as"),
        (b'"iron"', 422, "must be an object such as"),
        (b"{}", 422, "queries: this field is needed"),
        (b'{"queries": null}', 422, "queries: it must be a list in brackets"),
        (b'{"queries": "iron"}', 422, "queries: it must be a list in brackets"),
        (b'{"queries": {"0": "iron"}}', 422, "queries: it must be a list in brackets"),
        (b'{"queries": ["iron", 7]}', 422, "queries[1]: it must be a text in quotes"),
        (b'{"queries": ["iron", null]}', 422, "queries[1]: it must be a text in quotes"),
        (b'{"queries": [["iron"]]}', 422, "queries[0]: it must be a text in quotes"),
        (b'{"queries": ["iron", ""]}', 422, "queries[1]: it is empty"),
        (b'{"queries": [" \\n\\t"]}', 422, "queries[0]: it is empty"),
        (b'{"queries": ["\\ud800"]}', 422, "queries[0]"),
        (json.dumps({"queries": ["x" * 20_001]}).encode(), 422, "queries[0]: 20,001 characters are more than 20,000"),
        (
            json.dumps({"queries": ["iron"] * 1025}).encode(),
            422,
            "1,025 queries are too many; this server accepts 1,024",
        ),
        (b'{"queries": ["iron"], "topk": 1001}', 422, "topk: it must be from 1 to 1,000"),
        (b'{"queries": ["iron"], "topk": 0}', 422, "topk: it must be from 1 to 1,000"),
        (b'{"queries": ["iron"], "topk": -1}', 422, "topk: it must be from 1 to 1,000"),
        (b'{"queries": ["iron"], "topk": 99999999999999999999999}', 422, "topk"),
        (b'{"queries": ["iron"], "topk": 1e400}', 422, "topk: it must be a whole number"),
        (b'{"queries": ["iron"], "topk": 2.5}', 422, "topk: it must be a whole number"),
        (b'{"queries": ["iron"], "topk": "3"}', 422, "topk: it must be a whole number"),
        (b'{"queries": ["iron"], "topk": true}', 422, "topk: it must be a whole number"),
        (json.dumps({"queries": ["a"] * 11, "topk": 910}).encode(), 422, "topk 910 are more than 10,000 documents"),
        (b'{"queries": ["iron"], "return_scores": "yes"}', 422, "return_scores: it must be true or false"),
        (b" " * ((1 << 20) + 1), 413, "too large; this server accepts 1,048,576 bytes"),
    ],
)
def test_a_bad_request_is_refused_in_one_line_that_says_why(app, body, status, says):
    answer = request(app, content=body)
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["detail"]
    detail = answer.json()["detail"]
    assert says in detail and "\n" not in detail and len(detail) < 200


def test_a_request_just_within_the_limits_is_served(app):
    body = json.dumps({"queries": ["x" * 20_000, "iron"], "topk": 1000}).encode()
    assert request(app, content=body + b" " * ((1 << 20) - len(body))).status_code == 200
    assert request(app, json={"queries": ["iron"] * 1024, "topk": 9}).status_code == 200


def test_odd_characters_are_searched(app):
    odd = ["\x00", "iron\u202e", "😀", "ﬁ", "a\r\nb"]
    assert request(app, json={"queries": odd}).status_code == 200


def test_our_own_server_gives_what_searching_here_gives(store, home, monkeypatch):
    monkeypatch.delenv("R2MED_SERVE_TOKEN", raising=False)
    queries = (Query("0", "painfully bright light after the cinema"),)
    biology = load("demo/Biology", store)
    script = {queries[0].text: ["<search>dark adaptation of rods</search>", "<answer>the passage</answer>"]}
    data = type(biology)("x", queries, biology.corpus, biology.qrels)
    here = agent("search-r1", scripted(script)).expand(data, store)
    with serving("demo/Biology", "--retriever", "bm25", R2MED_HOME=home) as served:
        remote = agent("search-r1", scripted(script), remote=f"{served.url}/retrieve").expand(data, store)
    first, second = (expansion.traces["0"]["turns"][0] for expansion in (here, remote))
    assert first["documents"] and remote.notices == ()
    assert [document["id"] for document in first["documents"]] == [document["id"] for document in second["documents"]]
    assert first["information"] == second["information"]
