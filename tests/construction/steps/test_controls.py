"""Planted controls: what each kind is, that none can be evidence, and that the same seed plants the same."""

import json

from r2med.construction.items import Candidate
from r2med.construction.steps.controls import NEAR_MISS, RANDOM, STUFFED, PlantControls
from r2med.foundation.runtime.runtime import Runtime
from support.building import CHUNKS, QUESTIONS, asked_of, run_step, streams

TEXTS = {chunk.id: chunk.text for chunk in CHUNKS}


def planted(folder, step=None, **more):
    kept, _, _ = run_step(step or PlantControls(), streams(folder, **more), folder)
    return {(item.question, item.control): item for item in kept}


def test_each_question_gets_one_of_each_kind_and_none_names_its_answer(tmp_path):
    controls = planted(tmp_path)
    assert set(controls) == {(q.id, kind) for q in QUESTIONS for kind in (NEAR_MISS, STUFFED, RANDOM)}
    answers = {question.id: question.answer for question in QUESTIONS}
    for (question, _), control in controls.items():
        assert answers[question] not in (control.text or TEXTS[control.chunk])
        assert control.chunk != question.replace("q", "c")


def test_a_near_miss_is_the_evidence_of_the_most_similar_question_with_another_answer(tmp_path):
    controls = planted(tmp_path)
    assert controls["q1", NEAR_MISS].chunk == "c2"
    assert controls["q2", NEAR_MISS].chunk == "c1"
    same = [question.model_copy(update={"answer": "Measles"}) for question in QUESTIONS]
    assert not any(kind == NEAR_MISS for _, kind in planted(tmp_path, questions=same))


def test_a_stuffed_control_holds_every_word_of_the_query_in_another_text(tmp_path):
    text = planted(tmp_path)["q1", STUFFED].text
    assert set(QUESTIONS[0].text.split()) <= set(text.split())
    assert QUESTIONS[0].text not in text


def test_a_random_control_is_about_as_long_as_a_candidate(tmp_path):
    long = [Candidate(question="q1", chunk="c13")]
    assert planted(tmp_path, candidates=long)["q1", RANDOM].chunk == "c12"


def test_the_same_seed_plants_the_same_and_another_seed_others(tmp_path):
    assert planted(tmp_path) == planted(tmp_path)
    assert planted(tmp_path) != planted(tmp_path, PlantControls(seed=1))
    assert len(run_step(PlantControls(each=2), streams(tmp_path), tmp_path)[0]) > 9


def test_an_llm_writes_near_misses_that_do_not_name_the_answer(tmp_path, monkeypatch):
    def reply(request):
        passage = "Scarlet fever peels." if request.sample else "Not Kawasaki Disease, but scarlet fever."
        return json.dumps({"condition": "scarlet fever", "passage": passage})

    llm = asked_of(reply, monkeypatch)
    controls = planted(tmp_path, PlantControls(llm="gpt4"))
    assert controls["q1", NEAR_MISS].text == "Scarlet fever peels."
    assert "Kawasaki" in controls["q2", NEAR_MISS].text
    assert len(llm.asked) == 4
    assert "prompt" not in PlantControls().key(streams(tmp_path), Runtime())
