"""Prompt templates are listed and shown, and a set of them is begun."""

import json
from pathlib import Path

import pytest

import r2med as r2med_package
from support.facts import some_states, states
from support.fork_server import Command


def test_templates_are_listed_shown_and_copied(r2med: Command) -> None:
    assert "similar-case" in r2med("list", "prompts").stdout
    assert "Question: {query}" in r2med("show", "--kind", "prompts", "short").stdout
    shown = r2med("show", "--kind", "prompts", "hyde.exam").stdout
    assert shown.startswith("hyde.exam (")
    assert "hyde.case" not in shown
    made = r2med("show", "--kind", "prompts", "hyde", "-o", "my set")
    assert made.stdout.splitlines()[-1].endswith("hyde(LLM, prompts=my%20set)")
    assert "exam" in r2med("show", "--kind", "prompts", "./my set").stdout
    planned = r2med("run", "hyde(gpt4, prompts=my%20set) → bm25", "--data", "demo/MedQA-Diag", "--plan")
    some_states(planned.messages, "hyde.exam", "my set", "built in")


@pytest.mark.parametrize(
    ("name", "file", "use"),
    [
        ("rank1-7b", "rank1.txt", "rank1-7b(prompts=mine)"),
        ("first", "first.txt", "first-7b(prompts=mine)"),
        ("rankgpt", "rankgpt.txt", "rankgpt(LLM, prompts=mine)"),
        ("tongsearch-qr-7b", "tongsearch-qr.txt", "tongsearch-qr-7b(prompts=mine)"),
    ],
)
def test_the_prompt_of_a_trained_model_is_copied_by_the_model_s_name(
    r2med: Command, name: str, file: str, use: str
) -> None:
    made = r2med("show", "--kind", "prompts", name, "-o", "mine").stdout.splitlines()
    assert made[0].endswith(file) and made[-1].endswith(use)
    system = f"{use.replace('LLM', 'gpt4')} → bm25" if "tong" in name else f"bm25 → {use.replace('LLM', 'gpt4')}@20"
    planned = r2med("run", system, "--data", "demo/MedQA-Diag", "--plan", "--base-url", "http://127.0.0.1:9/v1")
    assert planned.returncode == 0 and "from mine" in planned.stderr


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (["show", "--kind", "prompts", "hide"], ["hide", "hyde?"]),
        (["show", "--kind", "prompts", "hide", "-o", "x"], ["hide", "hyde?"]),
        (["show", "hyde", "-o", "x"], ["--kind prompts"]),
        (
            ["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--prompts", "nowhere"],
            ["prompts=nowhere", "no such set"],
        ),
    ],
)
def test_bad_input_is_one_line(r2med: Command, words: list[str], facts: list[str]) -> None:
    ended = r2med(*words)
    assert ended.returncode == 2
    states(ended.stderr, *facts)


def test_the_prompts_of_build_and_analyse_are_listed_and_shown_too(r2med: Command) -> None:
    listed = r2med("list", "prompts").stdout
    package = Path(r2med_package.__file__).parent
    names = [
        f"{command}/{file.stem}"
        for command, room in (("analyse", "analysis"), ("build", "construction"))
        for file in (package / room / "prompts").glob("*.txt")
    ]
    assert len(names) >= 13 and all(name in listed for name in names)
    assert "near-miss" in r2med("show", "--kind", "prompts", "build/near-miss").stdout


def test_rubrics_are_listed_and_shown_with_their_prompts(r2med: Command) -> None:
    listed = json.loads(r2med("list", "rubrics", "--format", "json").stdout)
    assert {"relevance", "evidence", "answer-grade", "passage"} <= {row["rubric"] for row in listed}
    shown = json.loads(r2med("show", "evidence", "--kind", "rubrics", "--format", "json").stdout)
    assert "two scales" in shown["prompt"] and [point["name"] for point in shown["points"]] == ["relevance", "support"]
