"""Readers answer from the results of systems: what they read, what comes back, and what is kept."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import r2med
from r2med.assessment.answers.answer_options import options_of
from r2med.assessment.answers.answer_page import answer_page
from r2med.assessment.answers.answering import AnsweredSystems
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_views import answering_cost
from r2med.evaluation.records.answer_words import Condition
from r2med.evaluation.records.record import Record
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.core.errors import UserError
from r2med.foundation.pages.text_formats import page_markdown
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import RawAnswer
from r2med.models.llm.scripted import ScriptedBackend
from support.datasets import r2med_folder

PASSAGE = (
    "Coeliac disease is an immune reaction to gluten that damages the small bowel of people with certain genes. "
    "The diagnosis rests on antibodies against transglutaminase and on a biopsy of the duodenum while gluten is eaten."
)
DOCUMENTS = [
    {"id": "coeliac", "text": PASSAGE},
    {"id": "iron", "text": "Iron deficiency makes people pale and tired, and has many causes."},
    *(
        {"id": f"boat-{number}", "text": f"Boat {number} lies in the harbour and waits for wind."}
        for number in range(9)
    ),
]
QUESTION = (
    "A {} patient is tired after bread and has a small bowel that looks flat and red under the lens: what is the "
    "diagnosis of this patient?"
)
ANSWER = "Coeliac disease"
REPLIES: dict[str, Any] = {
    "right": {"answer": "The diagnosis is coeliac disease [1]. It is an immune reaction to gluten [1][2]."},
    "wrong": {"answer": "This is gout [2]."},
    "declining": "I'm sorry, but I cannot say that this is coeliac disease.",
    "modest": {"answer": "The passages do not mention whether this is coeliac disease."},
    "foreign": {"answer": "El diagnóstico de la paciente es coeliac disease, porque el intestino es plano y está mal."},
    "quoting": {"answer": PASSAGE},
    "parroting": {"answer": QUESTION.format("parroting")},
    "short": {"answer": "The coeliac disease [1]."},
    "inventive": {"answer": "It is coeliac disease [7]. The harbour shows it [1, 9]."},
    "rambling": "Coeliac disease it is, I think, without any of that notation.",
    "broken": '{"answer": Coeliac disease, I think',
}
RULES: list[tuple[list[str], Any]] = [([f"A {name} patient"], reply) for name, reply in REPLIES.items()]


def folder(place: Path) -> Path:
    queries = [{"id": name, "text": QUESTION.format(name), "answer": ANSWER} for name in REPLIES]
    qrels = [{"q_id": name, "p_id": "coeliac", "score": 1} for name in REPLIES]
    r2med_folder(place, DOCUMENTS, queries, qrels)
    return place


def runtime(place: Path, rules: list[tuple[list[str], Any]], **settings: Any) -> Runtime:
    place.mkdir(parents=True, exist_ok=True)
    rows = [{"when": when, "answer": a if isinstance(a, str) else json.dumps(a)} for when, a in rules]
    file = place / "script.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return Runtime(store=Store(place / "store"), model_paths={"script": file}, **settings)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("answers")


@pytest.fixture(scope="module")
def record(place: Path) -> Record:
    """The answers of a reader that behaves in another way for each question."""
    with runtime(place, RULES) as opened:
        (record,) = r2med.answer("bm25", "script", folder(place / "set"), passages=2, out=place / "out", setup=opened)
    return record


@pytest.fixture(scope="module")
def retrieved(place: Path, record: Record) -> dict[str, GivenAnswer]:
    given = StoredRecord(record, next((place / "out").rglob("*.answers.json"))).given()
    return {each.query: each for each in given if each.condition == "retrieved"}


@pytest.mark.parametrize(
    ("name", "remarks"),
    [
        ("right", ()),
        ("declining", ()),
        ("modest", ()),
        ("foreign", ("another language",)),
        ("quoting", ("copy of passages",)),
        ("parroting", ("copy of the question",)),
        ("rambling", ()),
    ],
)
def test_what_is_striking_is_a_remark_and_still_an_answer(
    retrieved: dict[str, GivenAnswer], name: str, remarks: tuple[str, ...]
) -> None:
    assert retrieved[name].status == "answered"
    assert retrieved[name].remarks == remarks


def test_without_a_judge_open_answers_have_no_accuracy(record: Record, retrieved: dict[str, GivenAnswer]) -> None:
    """Nearly every reply contains the reference answer, and one is the reference answer."""
    assert {name for name, each in retrieved.items() if each.by_rule} == {"short"}
    assert record.answers.mean["retrieved"] == pytest.approx({"citation-relevance": (1 / 2 + 0 + 1 / 3 + 1) / 4})
    assert record.answers.statuses["retrieved"] == {"answered": len(REPLIES) - 1, "unreadable": 1}
    assert not record.answers.grades


def test_the_page_says_that_answers_are_not_judged(record: Record) -> None:
    page = page_markdown(answer_page(AnsweredSystems((record,), (), 0), "out"))
    assert "| accuracy |" not in page
    assert "Not judged: open answers have no accuracy" in page
    assert "(--judge LLM)" in page


def test_each_condition_has_the_cost_of_its_own_prompts(record: Record) -> None:
    costs = record.answers.costs
    assert set(costs) == set(record.answers.statuses)
    assert sum(cost.prompt_tokens for cost in costs.values()) == record.cost_of("read").prompt_tokens
    assert costs["closed book"].prompt_tokens < costs["relevant"].prompt_tokens < costs["retrieved"].prompt_tokens
    answering = answering_cost(record, "retrieved")
    assert answering == costs["retrieved"] + record.cost_of("retrieve")
    assert answering_cost(record, "closed book") == costs["closed book"]


def test_citations_of_passages_that_do_not_exist_are_counted_and_name_no_document(
    retrieved: dict[str, GivenAnswer],
) -> None:
    first, second = retrieved["inventive"].sentences
    assert (first.text, first.documents, first.unknown) == ("It is coeliac disease.", (), 1)
    assert (second.documents, second.unknown) == (("coeliac",), 1)
    assert [each.documents for each in retrieved["right"].sentences] == [("coeliac",), ("coeliac", "iron")]


def test_an_answer_that_reaches_the_token_limit_is_cut_off_and_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = 0

    def write_on(self: ScriptedBackend, requests: Any, done: Any) -> None:
        nonlocal asked
        for number, _ in enumerate(requests):
            asked += 1
            done(
                number,
                RawAnswer(
                    '{"answer": "It is coeliac disease, and', "", "length", prompt_tokens=10, completion_tokens=10
                ),
            )

    monkeypatch.setattr(ScriptedBackend, "answer", write_on)
    with runtime(tmp_path, RULES) as opened:
        settings: dict[str, Any] = {"conditions": ("closed book",), "out": tmp_path / "out", "setup": opened}
        (first,) = r2med.answer("bm25", "script", folder(tmp_path / "set"), **settings)
        (again,) = r2med.answer("bm25", "script", tmp_path / "set", **settings)
    assert first.answers.statuses["closed book"] == {"cut off": len(REPLIES)}
    assert again.model_copy(update={"named": first.named}) == first
    assert asked == len(REPLIES)
    page = page_markdown(answer_page(AnsweredSystems((first,), (), 0), "out"))
    assert "cut off at the token limit" in page


def test_each_condition_reads_what_it_should(place: Path, record: Record) -> None:
    given = StoredRecord(record, next((place / "out").rglob("*.answers.json"))).given()
    read = {each.condition: each.read for each in given if each.query == "right"}
    assert read["closed book"] == ()
    assert read["retrieved"][0] == "coeliac"
    assert len(read["retrieved"]) == 2
    assert read["relevant"] == ("coeliac",)
    assert read["random"]
    assert "coeliac" not in read["random"]
    assert all(each.cut == 0 for each in given if each.condition != "random")


def test_a_second_system_pays_only_for_what_it_reads_itself(
    place: Path, record: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal answers what does not depend on the system."""

    def refuse(*_: object) -> None:
        raise AssertionError("the reader was asked")

    monkeypatch.setattr(ScriptedBackend, "answer", refuse)
    conditions: tuple[Condition, ...] = ("closed book", "relevant")
    with runtime(place, RULES) as opened:
        (again,) = r2med.answer("bm25", "script", place / "set", passages=2, out=place / "out", setup=opened)
        (other,) = r2med.answer(
            "bm25(b=0)", "script", place / "set", conditions=conditions, passages=2, out=place / "out", setup=opened
        )
    assert again.model_copy(update={"named": record.named}) == record
    assert set(other.answers.mean) == set(conditions)
    assert all(other.answers.per_query[each] == record.answers.per_query[each] for each in conditions)
    assert other.cost_of("read").calls == record.cost_of("read").calls / 2  # as if nothing had been cached


def test_a_failed_request_has_no_score_and_alone_is_asked_again(tmp_path: Path) -> None:
    data = folder(tmp_path / "set")
    rules = [([f"A {name} patient"], {"answer": "Coeliac disease"}) for name in REPLIES if name != "wrong"]
    settings: dict[str, Any] = {"conditions": ["closed book"], "out": tmp_path / "out"}
    with runtime(tmp_path, rules) as opened:
        (record,) = r2med.answer("bm25", "script", data, setup=opened, **settings)
    assert record.answers.statuses == {"closed book": {"answered": 10, "failed": 1}}
    assert record.answers.per_query["closed book"]["wrong"] == {}


def test_long_passages_are_cut_to_the_window_and_the_cut_is_counted(tmp_path: Path) -> None:
    documents = [{"id": f"d{n}", "text": f"Gluten harms the bowel, part {n}. " * 900} for n in range(4)]
    queries = [{"id": "q", "text": "What harms the bowel?", "answer": "Gluten"}]
    r2med_folder(tmp_path / "set", documents, queries, [{"q_id": "q", "p_id": "d0", "score": 1}])
    card = tmp_path / "plugin" / "llms" / "narrow.toml"
    card.parent.mkdir(parents=True)
    card.write_text('model = "narrow"\nbackend = "scripted"\ncontext_length = 2000\nmax_tokens = 500\n')
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
        opened = runtime(tmp_path, [([], {"answer": "Gluten [1]."})])
        setup = opened.with_settings(model_paths={"narrow": tmp_path / "script.jsonl"})
        (record,) = r2med.answer("bm25", "narrow", tmp_path / "set", passages=4, out=tmp_path / "out", setup=setup)
    given = {each.condition: each for each in StoredRecord(record, tmp_path / "out" / "set" / "record").given()}
    assert given["retrieved"].cut == 4
    assert len(given["retrieved"].read) == 4  # every passage is shortened, none is lost
    assert 1000 < given["retrieved"].tokens <= 1500
    assert given["relevant"].cut == 1
    assert given["random"].tokens <= 1500
    assert given["closed book"].cut == 0
    assert "cut to fit the reader's window of 2,000 tokens" in record.answers.notices[0]


def test_a_choice_is_right_if_it_is_the_option_of_the_reference(tmp_path: Path) -> None:
    queries = [{"id": name, "text": f"Which is {name}?", "answer": name} for name in ("gout", "measles", "mumps")]
    r2med_folder(tmp_path / "set", DOCUMENTS, queries, [{"q_id": q["id"], "p_id": "iron", "score": 1} for q in queries])
    rules = [
        (["Which is mumps?"], "I cannot choose, but mumps is one of them, and I can't say more"),
        (["choosing one option", "A. gout"], {"choice": "A. gout"}),
        (["choosing one option", "B. gout"], {"choice": "b"}),
        (["choosing one option", "C. gout"], {"choice": "C"}),
    ]
    with runtime(tmp_path, rules) as opened:
        (record,) = r2med.answer(
            "bm25", "script", tmp_path / "set", form="choice", out=tmp_path / "out", setup=opened, passages=1
        )
    scores = {query: each["accuracy"] for query, each in record.answers.per_query["retrieved"].items()}
    assert scores == {"gout": 1.0, "measles": 0.0, "mumps": 0.0}
    assert record.answers.form == "choice"
    given = {
        each.query: each
        for each in StoredRecord(record, tmp_path / "out" / "set" / "record").given()
        if each.condition == "relevant"
    }
    assert given["gout"].text == "gout"
    assert set(given["gout"].options) == {"gout", "measles", "mumps"}
    assert given["mumps"].status == "no option"


def test_a_mistake_is_one_line_before_anything_is_asked(tmp_path: Path) -> None:
    opened = runtime(tmp_path, [])
    for arguments, message in [
        ({"conditions": ["gold"]}, "condition"),
        ({"readers": []}, "reader"),
        ({"readers": "no-such-llm"}, "no-such-llm"),
        ({"nuggets": "x.jsonl"}, "judge"),
    ]:
        given: dict[str, Any] = {"systems": "bm25", "readers": "script", "data": "demo/Biology", "setup": opened}
        with pytest.raises(UserError, match=message):
            r2med.answer(**{**given, **arguments})


def test_options_of_the_dataset_are_shown_as_they_are_and_no_others(tmp_path: Path) -> None:
    common = {"answer": "mumps", "options": ["gout", "mumps"]}
    queries = [
        {"id": "list", "text": "Which swells?", **common},
        {"id": "lettered", "text": "Which one?", **common, "options": {"A": "mumps", "B": "gout"}},
        {"id": "faulty", "text": "Which is it?", **common, "answer": "rabies"},  # its options lack the answer
    ]
    r2med_folder(tmp_path / "set", DOCUMENTS, queries, [{"q_id": q["id"], "p_id": "iron", "score": 1} for q in queries])
    dataset = r2med.load(tmp_path / "set", Store(tmp_path / "store"))
    assert {query.id: query.options for query in dataset.queries} == {
        "list": ("gout", "mumps"), "lettered": ("mumps", "gout"), "faulty": ()
    }  # fmt: skip
    without = replace(dataset, queries=[replace(query, options=()) for query in dataset.queries])
    assert without.fingerprint != dataset.fingerprint
    assert options_of(dataset.queries[0], dataset.queries) == ("gout", "mumps")
    assert set(options_of(dataset.queries[2], dataset.queries)) == {"rabies", "mumps"}
