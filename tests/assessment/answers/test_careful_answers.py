"""No rule decides on an open answer: a caveat, a refusal in words and prose without JSON all reach the judge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

import r2med
from r2med.assessment.answers.answer_sheets import can_be_judged
from r2med.assessment.rubrics.rubric import RUBRICS
from r2med.evaluation.records.answer_facts import GivenAnswer
from r2med.evaluation.records.answer_words import AnswerGrade
from r2med.evaluation.records.stored_records import StoredRecord
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.llm.chat import RawAnswer
from r2med.models.llm.scripted import ScriptedBackend
from support.answer_sentences import CAREFUL, CHOICE_SENTENCES, JOINT, OPEN_ANSWERS
from support.datasets import r2med_folder

OPEN = (*CAREFUL, *OPEN_ANSWERS)
DOCUMENTS = [{"id": "gout", "text": "Urate crystals in a joint are called gout."}]


def answered(place: Path, replies: list[str], **settings: Any) -> dict[str, GivenAnswer]:
    """Return the answers of a reader that replies to question q0 with the first of these texts, and so on."""
    rows = [{"when": [f"Question {number}:"], "answer": reply} for number, reply in enumerate(replies)]
    (place / "script.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    options = {"options": list(JOINT.values())} if settings.get("form") == "choice" else {}
    queries = [
        {"id": f"q{number}", "text": f"Question {number}: what ails this toe?", "answer": "Acute gout", **options}
        for number, _ in enumerate(replies)
    ]
    qrels = [{"q_id": query["id"], "p_id": "gout", "score": 1} for query in queries]
    r2med_folder(place / "set", DOCUMENTS, queries, qrels)
    with Runtime(store=Store(place / "store"), model_paths={"script": place / "script.jsonl"}) as opened:
        (record,) = r2med.answer(
            "bm25", "script", place / "set", conditions="retrieved", out=place / "out", setup=opened, **settings
        )
    given = StoredRecord(record, next((place / "out").rglob("*.answers.json"))).given()
    return {each.query: each for each in given}


def test_every_open_answer_is_an_answer_that_a_judge_can_grade(tmp_path: Path) -> None:
    given = answered(tmp_path, [json.dumps({"answer": text}) for text in OPEN])
    assert [given[f"q{number}"].text for number, _ in enumerate(OPEN)] == list(OPEN)
    assert {each.status for each in given.values()} == {"answered"}
    assert all(can_be_judged(each) for each in given.values())
    assert all("accuracy" not in each.scores for each in given.values()), "without a judge nothing is decided"


def test_prose_without_a_brace_is_the_answer_and_prose_with_one_is_asked_for_again(tmp_path: Path) -> None:
    given = answered(tmp_path, list(OPEN))
    for number, text in enumerate(OPEN):
        answer = given[f"q{number}"]
        assert (answer.status, answer.text) == (("unreadable", "") if "{" in text else ("answered", text))


def test_a_choice_in_prose_and_in_json_is_read_alike(tmp_path: Path) -> None:
    stated = [each for each in CHOICE_SENTENCES if each.options == JOINT]
    prose, in_json = tmp_path / "prose", tmp_path / "json"
    for place, replies in (
        (prose, [each.text for each in stated]),
        (in_json, [json.dumps({"choice": each.text}) for each in stated]),
    ):
        place.mkdir()
        given = answered(place, replies, form="choice")
        for number, each in enumerate(stated):
            answer = given[f"q{number}"]
            if each.choice is None:
                assert (answer.status, answer.choice, answer.text) == ("no option", None, each.text)
            else:
                assert (answer.status, answer.text) == ("answered", JOINT[each.choice])
            assert answer.scores["accuracy"] == (each.choice == "A")


def test_a_refusal_is_what_the_server_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def filtered(self: ScriptedBackend, requests: Any, done: Any) -> None:
        for number, _ in enumerate(requests):
            done(number, RawAnswer("I cannot", "", "content_filter", prompt_tokens=10, completion_tokens=2))

    monkeypatch.setattr(ScriptedBackend, "answer", filtered)
    (given,) = answered(tmp_path, ["never said"]).values()
    assert (given.status, given.failure, given.text) == ("refused", "refused", "")


def test_the_grades_of_answers_are_the_words_of_the_rubric() -> None:
    assert [word.word for word in RUBRICS["answer-grade"].words] == list(get_args(AnswerGrade))
