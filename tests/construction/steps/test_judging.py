"""LLM judges: two scores with a reason or a failure; several judges; the families they are of."""

import pytest

from r2med.construction.items import Candidate
from r2med.construction.step_table import parse_step
from r2med.construction.steps.judging import Judge
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from support.building import CANDIDATES, asked_of, run_step, streams

GOOD = '{"rationale": "It names it.", "relevance": 5, "support": 4}'


def judge(spec):
    made = parse_step(parse_stage(spec)[0])
    assert isinstance(made, Judge)
    return made


def test_a_judge_gives_two_scores_and_a_reason_and_is_named(tmp_path, monkeypatch):
    llm = asked_of(lambda _: GOOD, monkeypatch)
    planted = Candidate(question="q1", chunk="control-x", control="stuffed", text="stuffed words")
    given = streams(tmp_path, candidates=[*CANDIDATES, planted])
    kept, rejected, work = run_step(judge("judge(gpt4)"), given, tmp_path)
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
        shown in llm.prompts[3] for shown in ("stuffed words", "strawberry tongue", "Kawasaki disease", "Fever.")
    )
    assert not any(hidden in prompt for prompt in llm.prompts for hidden in ("control", "c1", "q1", "bm25", "p1"))


def test_several_judges_judge_everything_each(tmp_path, monkeypatch):
    asked_of(lambda _: GOOD, monkeypatch)
    step = judge("judge(judges=gpt4:r1-qwen-32b)")
    kept, _, work = run_step(step, streams(tmp_path), tmp_path)
    assert [item.judge for item in kept] == ["gpt4"] * 3 + ["r1-qwen-32b"] * 3
    assert work.facts["judges"]["r1-qwen-32b"]["families"] == ["qwen", "deepseek"]
    key = step.key(streams(tmp_path), Runtime())
    assert key != judge("judge(gpt4)").key(streams(tmp_path), Runtime())
    assert str(step) == "judge(judges=gpt4:r1-qwen-32b)"


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "I would say 5 and 4.",
        '{"relevance": 5, "support": 4}',
        '{"rationale": " ", "relevance": 5, "support": 4}',
        '{"rationale": "x", "relevance": 6, "support": 4}',
        '{"rationale": "x", "relevance": -1, "support": 4}',
        '{"rationale": "x", "relevance": 3.5, "support": 4}',
        '{"rationale": "x", "relevance": null, "support": 4}',
        '{"rationale": "x", "relevance": true, "support": 4}',
        '{"rationale": "x", "relevance": 1e999, "support": 4}',
        '{"rationale": "x", "relevance": "high", "support": 4}',
        '{"rationale": "x", "relevance": [5], "support": 4}',
    ],
)
def test_an_answer_that_is_not_valid_is_asked_for_anew_then_counted_and_never_guessed(tmp_path, monkeypatch, answer):
    llm = asked_of(lambda request: answer if request.sample < 2 else GOOD, monkeypatch)
    assert len(run_step(judge("judge(gpt4)"), streams(tmp_path), tmp_path)[0]) == 3
    assert len(llm.asked) == 9
    kept, rejected, work = run_step(judge("judge(gpt4, tries=2)"), streams(tmp_path), tmp_path)
    assert kept == []
    assert {item.note for item in rejected} == {"gpt4: unreadable"}
    assert work.failures == {"unreadable": 3}
