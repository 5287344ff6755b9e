"""What a card needs beyond chat is refused in one line before the run, where the LLM is known to lack it."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Size
from r2med.foundation.core.spec import parse_stage
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import stage_of
from r2med.foundation.store import Store
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.rerank.llm_reranker_cards import LLM_RERANKERS
from support.llm_rerankers import graded
from support.ready import Ready, ready_reranker

DATA, _ = graded([1.0, 2.0])


@pytest.fixture(autouse=True)
def no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def reranker_of(spec: str, home: Path, **settings: object) -> Ready:
    return ready_reranker(spec, Runtime(store=Store(home), **settings))


def scripted(home: Path) -> dict[str, object]:
    script = home.parent / "script.jsonl"
    script.write_text('{"when": [], "answer": "[1]"}\n')
    return {"model_paths": (("author", script),)}


@pytest.mark.parametrize("name", ["first-7b", "rank1-7b", "erank-4b"])
def test_probabilities_of_tokens_are_refused_where_answers_are_scripted(name: str, home: Path) -> None:
    reranker = reranker_of(f"{name}(author)", home, **scripted(home))
    with pytest.raises(
        UserError, match="needs the log-probabilities of tokens, and author does not offer this"
    ) as error:
        reranker.check([DATA])
    assert "\n" not in str(error.value) and "serve the model with vLLM" in str(error.value)


@pytest.mark.parametrize("name", ["reasonrank-7b", "rank-r1-7b", "grouprank-7b", "retro-star-8b"])
def test_a_form_that_needs_only_chat_runs_with_any_llm(name: str, home: Path) -> None:
    reranker_of(f"{name}(author)", home, **scripted(home)).check([DATA])
    reranker_of(f"{name}(gpt-5)", home).check([DATA])


def test_openai_continues_no_texts_and_reports_no_probabilities_of_reasoning_models(home: Path) -> None:
    with pytest.raises(UserError, match="needs a server that continues raw texts"):
        reranker_of("rank1-7b(gpt4)", home).check([DATA])
    with pytest.raises(UserError, match="needs the log-probabilities of tokens, and gpt-5 does not"):
        reranker_of("erank-4b(gpt-5)", home).check([DATA])
    reranker_of("erank-4b(gpt4)", home).check([DATA])


def test_a_server_of_one_s_own_is_asked_before_it_is_refused(home: Path) -> None:
    for name in LLM_RERANKERS:
        if LLM_RERANKERS[name].llm:
            reranker_of(name, home, base_url="http://127.0.0.1:9/v1").check([DATA])
            reranker_of(name, home).check([DATA])  # a plan of it can be made without a server


def test_an_api_may_say_what_it_lacks(home: Path) -> None:
    lacking = {name for name, card in LLMS.items() if {"logprobs", "completions"} & {*card.lacks}}
    assert lacking >= {"claude-sonnet-4.5", "gemini-2.5-pro", "mistral-large", "deepseek-chat"}
    for name in lacking:
        with pytest.raises(UserError, match=f"and {name} does not offer this"):
            reranker_of(f"first-7b({name})", home).check([DATA])


def test_a_plan_says_how_to_serve_the_model(home: Path) -> None:
    for spec in ("rank1-7b@10", "grouprank(qwen3-32b)@10"):
        [call] = parse_stage(spec)
        [plan] = stage_of(call, "rerank").needs(Size(1, 1), Runtime(store=Store(home)))
        assert "needs a server: start `vllm serve " in plan.missing
        [plan] = stage_of(call, "rerank").needs(
            Size(1, 1), Runtime(store=Store(home), base_url="http://127.0.0.1:9/v1")
        )
        assert plan.missing == ""
