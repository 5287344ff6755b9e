"""LLM judges: two scores with a reason or a failure; several judges; the families they are of."""

import json
import re

import pytest

from r2med.construction.items import Candidate, Found, PageChunk, SourceQuestion
from r2med.construction.judge_tests import judge_tests, judge_trust
from r2med.construction.labels import CITED, NEAR_MISS, ORDERS, WRITTEN, Labelling
from r2med.construction.step import Streams
from r2med.construction.steps.judging import Judge
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.models.llm.chat import Failure
from support.building import CANDIDATES, asked_of, run_step, streams

BAD = '{"why": "It does not.", "relevance": 0, "support": 0}'
GOOD = '{"why": "It names it.", "relevance": 5, "support": 4}'


def judge(spec):
    made = stage_of(parse_stage(spec)[0], "build")
    assert isinstance(made, Judge)
    return made


def test_a_judge_gives_two_scores_and_a_reason_and_is_named(tmp_path, monkeypatch):
    llm = asked_of(lambda _: GOOD, monkeypatch)
    planted = Candidate(question="q1", chunk="control-x", control="stuffed", text="stuffed words")
    given = streams(tmp_path, candidates=[*CANDIDATES, planted])
    kept, rejected, work = run_step(judge("judge(gpt4, untested=yes)"), given, tmp_path)
    assert [(item.question, item.chunk, item.judge, item.control) for item in kept] == [
        ("q1", "c1", "gpt4", ""),
        ("q2", "c2", "gpt4", ""),
        ("q3", "c3", "gpt4", ""),
        ("q1", "control-x", "gpt4", "stuffed"),
    ]
    assert (kept[0].relevance, kept[0].support, kept[0].rationale) == (5, 4, "It names it.")
    assert rejected == []
    assert work.facts["judges"] == {"gpt4": {"model": "gpt-4o-2024-11-20", "families": ["gpt"]}}
    # Judged blindly: the text, and nothing that tells where it comes from.
    assert all(
        shown in llm.prompts[0] for shown in ("stuffed words", "strawberry tongue", "Kawasaki disease", "Fever.")
    )
    assert not any(hidden in prompt for prompt in llm.prompts for hidden in ("control", "c1", "q1", "bm25", "p1"))


def test_several_judges_judge_everything_each(tmp_path, monkeypatch):
    asked_of(lambda _: GOOD, monkeypatch)
    step = judge("judge(judges=gpt4:r1-qwen-32b, untested=yes)")
    kept, _, work = run_step(step, streams(tmp_path), tmp_path)
    assert [item.judge for item in kept] == ["gpt4"] * 3 + ["r1-qwen-32b"] * 3
    assert work.facts["judges"]["r1-qwen-32b"]["families"] == ["qwen", "deepseek"]
    key = step.key(streams(tmp_path), Runtime())
    assert key != judge("judge(gpt4)").key(streams(tmp_path), Runtime())
    assert str(step) == "judge(judges=gpt4:r1-qwen-32b, untested=yes)"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would say 5 and 4.",
        '{"relevance": 5, "support": 4}',
        '{"why": " ", "relevance": 5, "support": 4}',
        '{"why": "x", "relevance": 6, "support": 4}',
        '{"why": "x", "relevance": -1, "support": 4}',
        '{"why": "x", "relevance": 3.5, "support": 4}',
        '{"why": "x", "relevance": null, "support": 4}',
        '{"why": "x", "relevance": true, "support": 4}',
        '{"why": "x", "relevance": 1e999, "support": 4}',
        '{"why": "x", "relevance": "high", "support": 4}',
        '{"why": "x", "relevance": [5], "support": 4}',
    ],
)
def test_an_answer_that_is_not_valid_is_asked_for_anew_then_counted_and_never_guessed(tmp_path, monkeypatch, answer):
    llm = asked_of(lambda request: answer if request.sample < 2 else GOOD, monkeypatch)
    assert len(run_step(judge("judge(gpt4, untested=yes)"), streams(tmp_path), tmp_path)[0]) == 3
    assert len(llm.asked) == 9
    kept, rejected, work = run_step(judge("judge(gpt4, tries=2, untested=yes)"), streams(tmp_path), tmp_path)
    assert kept == []
    assert {item.note for item in rejected} == {"gpt4: unreadable"}
    assert work.failures == {"unreadable": 3}


# Controls.


def pool(folder, count=50, kinds=(NEAR_MISS, ORDERS), author="", **more):
    """Return streams with a cited passage, another candidate and a planted control for each question."""
    numbers = range(count)
    questions = [SourceQuestion(id=f"q{n}", text=f"What is case {n}?", answer=f"answer-{n}.") for n in numbers]
    chunks = [PageChunk(id=f"{kind}{n}", text=f"{kind} of {n}", page=f"{kind}{n}") for kind in "gx" for n in numbers]
    by = {"g": "source", "x": "bm25"}
    candidates = [
        Candidate(question=f"q{n}", chunk=f"{kind}{n}", found=(Found(member=by[kind], view="query", rank=1),))
        for n in numbers
        for kind in ("x" if author else "gx")
    ]
    candidates += [
        Candidate(question=f"q{n}", chunk="control-no", control=kinds[n % len(kinds)], text=f"no {n}") for n in numbers
    ]
    if author:
        candidates += [
            Candidate(question=f"q{n}", chunk="control-yes", control=WRITTEN, text=f"g of {n}", author=author)
            for n in numbers
        ]
    given = streams(folder, questions=questions, chunks=chunks, candidates=candidates)
    return Streams(given.files, given.folder, **more)


def passage(request):
    return re.findall(r"<<<\n(.*?)\n>>>", request.messages[-1].content, re.DOTALL)[-1]


def right(request):
    return GOOD if passage(request).startswith("g ") else BAD


def trust(work):
    return judge_trust(judge_tests([work.facts]).values())


def test_a_judge_that_answers_its_controls_judges_everything_once(tmp_path, monkeypatch):
    llm = asked_of(right, monkeypatch)
    kept, _, work = run_step(judge("judge(gpt4)"), pool(tmp_path), tmp_path)
    assert [item.chunk for item in kept if not item.control] == [f"{kind}{n}" for n in range(50) for kind in "gx"]
    assert len(llm.asked) == len(kept) < 150, "only as many planted controls are asked as cited ones"
    assert not any(item.control for item in kept if item.chunk.startswith("g")), "what is cited stays a candidate"
    assert trust(work) == "judge tested: 80 of 80 controls right"
    [test] = judge_tests([json.loads(json.dumps(work.facts))]).values()
    assert test.asked == 80
    assert {count.kind for count in test.counts} == {CITED, NEAR_MISS, ORDERS}


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        (lambda request: GOOD, "it did not say no to 20 of 20 controls that are near miss"),
        (lambda request: BAD, "it did not say yes to 40 of 40 controls that are cited by the source"),
        (lambda request: "I cannot say.", "it did not say yes to 40 of 40 controls that are cited by the source"),
    ],
)
def test_a_judge_that_fails_its_controls_stops_before_the_candidates_are_paid_for(tmp_path, monkeypatch, reply, fault):
    llm = asked_of(reply, monkeypatch)
    with pytest.raises(UserError, match=f"judge: gpt4 cannot judge candidates: {fault}; use another LLM or prompt$"):
        run_step(judge("judge(gpt4, tries=1)"), pool(tmp_path), tmp_path)
    assert len(llm.asked) == 80


def test_too_few_controls_stop_the_step_unless_the_plan_says_untested(tmp_path, monkeypatch):
    llm = asked_of(right, monkeypatch)
    with pytest.raises(
        UserError,
        match="there are 9 passages that the source cites",
    ):
        run_step(judge("judge(gpt4)"), pool(tmp_path, count=9, kinds=(NEAR_MISS,)), tmp_path)
    assert not llm.asked
    _, _, work = run_step(judge("judge(gpt4, untested=yes)"), pool(tmp_path, count=9, kinds=(NEAR_MISS,)), tmp_path)
    assert trust(work) == "judge not tested"


def test_what_a_judge_wrote_itself_is_no_control_for_it(tmp_path, monkeypatch):
    asked_of(right, monkeypatch)
    kept, _, work = run_step(judge("judge(gpt4)"), pool(tmp_path, author="another-model"), tmp_path)
    assert trust(work).startswith("judge tested: 80 of 80")
    assert {item.control for item in kept} == {"", NEAR_MISS, ORDERS, WRITTEN}
    with pytest.raises(UserError, match="there are 0 passages that the source cites"):
        run_step(judge("judge(gpt4)"), pool(tmp_path, author="gpt-4o-2024-11-20"), tmp_path)


def test_only_one_passage_of_a_cited_page_is_a_control(tmp_path, monkeypatch):
    """Most passages of a long page that a source cites are not evidence."""
    asked_of(right, monkeypatch)
    given = pool(tmp_path)
    chunks = list(given.chunks())
    candidates = list(given.candidates())
    chunks += [PageChunk(id=f"h{n}", text=f"elsewhere on the page of {n}", page=f"g{n}") for n in range(50)]
    found = (Found(member="source", view="query", rank=1),)
    candidates += [Candidate(question=f"q{n}", chunk=f"h{n}", found=found) for n in range(50)]
    given = streams(tmp_path, questions=list(given.questions()), chunks=chunks, candidates=candidates)
    assert trust(run_step(judge("judge(gpt4)"), given, tmp_path)[2]) == "judge tested: 80 of 80 controls right"


def test_the_thresholds_of_the_plan_decide_what_yes_is(tmp_path, monkeypatch):
    asked_of(lambda request: right(request).replace("5", "3").replace("4", "3"), monkeypatch)
    kept, _, _ = run_step(judge("judge(gpt4)"), pool(tmp_path, labelling=Labelling(positive=3)), tmp_path)
    assert kept
    with pytest.raises(UserError, match="did not say yes to 40 of 40"):
        run_step(judge("judge(gpt4)"), pool(tmp_path), tmp_path)
    keys = [judge("judge(gpt4)").key(pool(tmp_path, labelling=Labelling(positive=n)), Runtime()) for n in (3, 4)]
    assert keys[0] != keys[1]


def test_a_server_that_fails_during_the_controls_stops_the_step_and_is_no_wrong_answer(tmp_path, monkeypatch):
    asked_of(lambda request: Failure("timeout", "too slow"), monkeypatch)
    with pytest.raises(UserError, match=r"did not answer 80 of 80 controls .*type the same command again to go on"):
        run_step(judge("judge(gpt4)"), pool(tmp_path), tmp_path)


def test_a_plan_counts_the_controls_of_every_judge_and_is_unknown_before_candidates_are_collected(tmp_path):
    runtime, given = Runtime(store=Store(tmp_path / "store")), pool(tmp_path)
    assert (plan := judge("judge(gpt4)").calls(given, runtime)) and plan.calls == 150
    assert (plan := judge("judge(gpt4, judges=gpt4:gpt-5-mini)").calls(given, runtime)) and plan.calls == 300
    assert judge("judge(gpt4)").calls(Streams({}, tmp_path), runtime) is None


RUBRIC = '''
noun = "passage"
task = "Decide whether the passage helps."
prompt = """
Does it help? Texts between <<< and >>> are material.
<<<
{query}
>>>
<<<
{text}
>>>
Answer with {"why": "...", "helps": "yes"}"""
texts = [{field = "query", label = "Question"}, {field = "text", label = "Passage", rated = true}]
points = [{name = "helps"}]
'''


def test_a_rubric_of_ones_own_beside_the_plan_replaces_prompt_and_words(tmp_path, monkeypatch):
    words = {"g": "yes", "x": "unsure", "n": "no"}
    llm = asked_of(lambda r: json.dumps({"why": "it says", "helps": words[passage(r)[0]]}), monkeypatch)
    (tmp_path / "helps.toml").write_text(RUBRIC, "utf-8")
    kept, _, work = run_step(judge("judge(gpt4, rubric=helps.toml)"), pool(tmp_path), tmp_path)
    assert {(item.chunk[0], item.relevance, item.support) for item in kept} == {("g", 5, 5), ("x", 3, 3), ("c", 0, 0)}
    assert llm.prompts[0].lstrip().startswith("Does it help?")
    assert trust(work).startswith("judge tested: 80 of 80")
    (tmp_path / "helps.toml").write_text(RUBRIC.replace("query", "stem"), "utf-8")
    with pytest.raises(UserError, match="the rubric helps has the text 'stem'; a build has query, answer, reasoning"):
        run_step(judge("judge(gpt4, rubric=helps.toml)"), pool(tmp_path), tmp_path)


def test_a_folder_of_prompts_beside_the_plan_replaces_the_prompt(tmp_path, monkeypatch):
    llm = asked_of(right, monkeypatch)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "judge.txt").write_text("Mine. {query} {reasoning} <<<\n{text}\n>>>", "utf-8")
    run_step(judge("judge(gpt4, prompts=mine)"), pool(tmp_path), tmp_path)
    assert all(prompt.startswith("Mine.") for prompt in llm.prompts)
