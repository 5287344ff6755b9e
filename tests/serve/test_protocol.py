"""The request and the response of Search-R1's retrieval server, to the letter."""

import pytest

from r2med.serve import create_app
from r2med.serve.messages import Hit, contents, write_answer
from support.shelves import request


@pytest.fixture
def app(shelf):
    return create_app(shelf)


def ask(app, **question):
    answer = request(app, json=question)
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


def test_topk_cuts_and_is_three_unless_told(app):
    assert len(ask(app, queries=["coeliac iron"], topk=1)["result"][0]) == 1
    every = ask(app, queries=["in iron coeliac ärzte one"], topk=4)["result"][0]
    assert len(every) == 4
    for question in ({}, {"topk": None}):
        assert ask(app, queries=["in iron coeliac ärzte one"], **question)["result"][0] == every[:3]


def test_scores_are_left_out_unless_told(app):
    assert set(ask(app, queries=["iron"])["result"][0][0]) == {"id", "contents"}


def test_no_query_finds_nothing_and_a_query_that_finds_nothing_has_an_empty_list(app):
    assert ask(app, queries=[]) == {"result": []}
    assert ask(app, queries=["zebra", "???", "iron"], topk=1)["result"][:2] == [[], []]


def test_a_text_of_several_lines_brings_its_title_and_one_of_a_single_line_gets_an_empty_one(app):
    [[titled]] = ask(app, queries=["many causes"], topk=1)["result"]
    assert titled["contents"] == "Iron deficiency\nIron deficiency has many causes.\nCoeliac disease is one."
    [[single]] = ask(app, queries=["gluten"], topk=1)["result"]
    assert single["contents"] == "\nGluten harms the small bowel in coeliac disease."
    assert contents("") == "\n"
    assert contents("\nalready without a title") == "\nalready without a title"


def test_every_character_of_a_document_arrives(app):
    [[umlauts]] = ask(app, queries=["ärzte"], topk=1)["result"]
    assert umlauts == {"id": "ärzte", "contents": "\nÄrzte und 漢字 und 😀 in one line."}
    [[marked]] = ask(app, queries=["quoted"], topk=1)["result"]
    assert marked["contents"] == '\n<script>alert("1")</script> "quoted" iron\tand\u2028separators'


def test_keys_that_are_not_known_are_passed_over(app):
    assert ask(app, queries=["iron"], topk=1, user="agent 7") == ask(app, queries=["iron"], topk=1)


def test_the_content_type_does_not_matter(app):
    answer = request(app, content=b'{"queries": ["iron"]}', headers={"content-type": "text/plain"})
    assert answer.status_code == 200


def test_a_score_that_is_no_number_never_goes_out():
    with pytest.raises(ValueError):
        write_answer([[Hit("d", "text", float("nan"))]], scores=True)


def test_health_tells_what_is_served(app):
    from r2med import __version__

    answer = request(app, "GET", "/health")
    about = {"dataset": "small", "documents": 4, "retriever": "bm25", "version": __version__}
    assert answer.json() == {"status": "ok", **about, "waiting": 0}


def test_the_description_names_what_is_asked_and_answered(app):
    description = request(app, "GET", "/openapi.json").json()
    operation = description["paths"]["/retrieve"]["post"]
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(schema["properties"]) == {"queries", "topk", "return_scores"}
    assert schema["required"] == ["queries"]
    assert {"200", "400", "413", "422", "500", "503"} <= set(operation["responses"])
    assert "422" not in description["paths"]["/health"]["get"]["responses"]


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_page_for_a_person_needs_nothing_from_elsewhere(app, path):
    answer = request(app, "GET", path)
    assert "POST /retrieve" in answer.text and "4 documents of small" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    for word in ("src=", "http:", "https:", "<script"):
        assert word not in answer.text


def test_names_are_escaped_in_the_page(shelf):
    from dataclasses import replace

    answer = request(create_app(replace(shelf, dataset="<b>&amp;")), "GET", "/docs")
    assert "<b>" not in answer.text
    assert "&lt;b&gt;&amp;amp;" in answer.text
