"""`r2med run` with expansion: a dry run, feedback without an LLM, and every mistake about LLMs one line."""

import json

import pytest

from support import chat_server as api
from support.facts import some_states, states


def test_a_dry_run_asks_nothing_and_shows_calls_cost_and_a_prompt(tmp_path, r2med):
    done = r2med("run", "bm25", "--expand", "hyde", "--llm", "o3-mini", "--data", "demo", "--plan")
    assert done.returncode == 0, done.stderr
    assert "asks an LLM 64 times" in done.stdout
    assert done.stdout.count("prompt of hyde(o3-mini)") == 1
    assert not (tmp_path / "results").exists()


def test_the_plan_of_the_best_rows_needs_neither_their_data_nor_a_network(r2med, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    done = r2med("run", "--suite", "top", "--plan", "--format", "json")
    assert done.returncode == 0, done.stderr
    [table] = json.loads(done.stdout)["sections"][1]["tables"]
    assert len(table["rows"]) == 20 + 1
    assert "77 GB" in json.dumps(table["rows"][0])
    assert "r2med data fetch R2MED" in done.stdout
    assert "prompt of" not in done.stdout


def test_feedback_without_an_llm_runs_from_the_command_line(r2med):
    done = r2med("run", "bm25", "--expand", "rm3", "--expand", "rocchio", "--data", "demo/Biology", "--format", "json")
    assert [row["system"] for row in json.loads(done.stdout)] == ["rm3 → bm25", "rocchio → bm25"]


@pytest.mark.parametrize(
    ("arguments", "facts"),
    [
        (["run", "bm25", "--expand", "hyde"], ["hyde", "--llm"]),
        (["run", "bm25", "--llm", "gpt4"], ["--llm", "--expand"]),
        (["run", "bm25", "--expand", "hyd", "--llm", "gpt4"], ["hyd", "hyde?"]),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--data", "demo/Biology"], ["OPENAI_API_KEY"]),
        (["run", "bm25", "--expand", "hyde", "--llm", "gtp4", "--data", "demo/Biology"], ["gtp4", "gpt4?"]),
        (
            ["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--recorded", "--data", "demo/Biology"],
            ["gpt4", "author"],
        ),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--prompts", "nowhere"], ["nowhere"]),
        (["run", "hyde(gpt4, samples=0) -> bm25"], ["samples", 0]),
        (["generate", "hyde", "--llm", "gtp4"], ["gtp4", "gpt4?"]),
        (["generate", "rm3", "--llm", "gpt4"], ["rm3", "no LLM"]),
        (["show", "--kind", "llms", "gtp4"], ["gtp4", "gpt4?"]),
        (["run", "bm25", "--recorded"], ["--recorded", "LLM"]),
        (["run", "bm25", "--base-url", "http://localhost:8000/v1"], ["--base-url", "LLM"]),
        (["run", "hyde(gpt4) -> bm25", "--llm-backend", "locl"], ["locl", "local?"]),
        (["generate", "hyde", "--llm", "gpt4", "--llm-backend", "locl"], ["locl", "local?"]),
        (
            ["run", "hyde(gpt4) -> bm25", "--llm-backend", "local", "--base-url", "http://a"],
            ["gpt4", "local", "--base-url"],
        ),
    ],
)
def test_mistakes_about_llms_are_one_line(arguments, facts, r2med, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = r2med(*arguments)
    assert done.returncode == 2, done.stderr
    states(done.stderr.splitlines()[-1], *facts)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("flags", [[], ["--format", "json"]])
def test_a_run_with_failures_says_so_at_its_end(r2med, chat_server, flags):
    # One question at a time, because an LLM whose very first answer is a 403 stops the run.
    chat_server.script = [api.answer("an answer"), api.refuse(403)]
    words = ["run", "hyde(mine) → bm25", "--base-url", chat_server.address, "--data", "demo/Biology"]
    words += ["--concurrency", "1", *flags]
    ended = r2med(*words)
    assert ended.returncode == 0
    some_states((ended.stderr if flags else ended.stdout).splitlines(), "hyde(mine)", "1 query", "no generated text")
