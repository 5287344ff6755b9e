"""Planted controls: what each kind is, that none can be evidence, and that the same seed plants the same."""

import json

from r2med.construction.items import Candidate, Found, PageChunk
from r2med.construction.labels import NEAR_MISS, ORDERS, RANDOM, STUFFED, WRITTEN
from r2med.construction.steps.controls import PlantControls
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from support.building import CANDIDATES, CHUNKS, QUESTIONS, asked_of, run_step, streams

TEXTS = {chunk.id: chunk.text for chunk in CHUNKS}


def planted(folder, step=None, **more):
    kept, _, _ = run_step(step or PlantControls(), streams(folder, **more), folder)
    return {(item.question, item.control): item for item in kept}


def test_each_question_gets_one_of_each_kind_and_none_names_its_answer(tmp_path):
    controls = planted(tmp_path)
    assert set(controls) == {(q.id, kind) for q in QUESTIONS for kind in (NEAR_MISS, STUFFED, RANDOM, ORDERS)}
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


def reply(request):
    """Answer as an LLM that needs a second try for the first question."""
    if "every careful judge takes for evidence" in request.messages[-1].content:
        answer = next(each.answer for each in QUESTIONS if each.text in request.messages[-1].content)
        return json.dumps({"passage": f"{answer} explains it." if request.sample else "It is a disease."})
    passage = "Scarlet fever peels." if request.sample else "Not Kawasaki Disease, but scarlet fever."
    return json.dumps({"condition": "scarlet fever", "passage": passage})


def test_an_llm_writes_near_misses_that_do_not_name_the_answer(tmp_path, monkeypatch):
    llm = asked_of(reply, monkeypatch)
    controls = planted(tmp_path, PlantControls(llm="gpt4"))
    assert controls["q1", NEAR_MISS].text == "Scarlet fever peels."
    assert "Kawasaki" in controls["q2", NEAR_MISS].text
    assert sum("careless judge" in prompt for prompt in llm.prompts) == 4
    assert "prompt" not in PlantControls().key(streams(tmp_path), Runtime())


def test_an_llm_writes_evidence_for_questions_whose_source_cites_nothing_and_is_named(tmp_path, monkeypatch):
    asked_of(reply, monkeypatch)
    cited = CANDIDATES[0].model_copy(update={"found": (Found(member="source", view="link", rank=1),)})
    given = streams(tmp_path, candidates=[cited, *CANDIDATES[1:]])
    kept, _, work = run_step(PlantControls(llm="gpt4"), given, tmp_path)
    written = {item.question: item for item in kept if item.control == WRITTEN}
    assert {question: item.text for question, item in written.items()} == {
        "q2": "Measles explains it.",
        "q3": "Diabetes insipidus explains it.",
    }
    assert {item.author for item in written.values()} == {"gpt-4o-2024-11-20"}
    assert all(words in work.facts["prompt"] for words in ("careless judge", "every careful judge"))
    runtime = Runtime(store=Store(tmp_path / "store"))
    assert (plan := PlantControls(llm="gpt4").calls(given, runtime)) and plan.calls == 5
    assert (plan := PlantControls().calls(given, runtime)) and plan.calls == 0


def test_orders_to_the_judge_stand_in_unrelated_texts_in_many_forms(tmp_path):
    texts = [planted(tmp_path, PlantControls(seed=seed))["q1", ORDERS].text for seed in range(8)]
    assert len(set(texts)) == 8
    assert not any("Kawasaki" in text for text in texts)


def test_a_copy_of_a_cited_passage_is_never_planted(tmp_path):
    """It would be evidence under another id."""
    text = "The coronary arteries of the boy had grown wide by the third week of his fever. "
    chunks = [PageChunk(id=f"c{n}", text=text * 3, page=f"p{n}") for n in (1, 14, 15, 16)]
    cited = Candidate(question="q1", chunk="c1", found=(Found(member="source", view="link", rank=1),))
    assert planted(tmp_path, chunks=chunks, candidates=[cited]) == {}
    assert len(planted(tmp_path, chunks=[*chunks, CHUNKS[5]], candidates=[cited])) == 3
