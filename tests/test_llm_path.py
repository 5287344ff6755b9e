"""HyDE end to end with a real small LLM: in process, behind a real server, written to files and read back."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from r2med import evaluate
from r2med.llm.llama import gguf_file
from r2med.llm.llm_cards import LLMS
from r2med.results import Record
from r2med.setup import Setup
from r2med.store import Store
from r2med.system import System
from support.llama_server import serve

FOLDER_OF_ONE = {
    "query.jsonl": [{"id": "0", "text": "Crushing chest pain, sweating and ST elevation. What is the diagnosis?"}],
    "corpus.jsonl": [
        {"id": "mi", "text": "Acute myocardial infarction with ST elevation needs reperfusion."},
        {"id": "tax", "text": "The tax law of partnerships."},
    ],
    "qrels.jsonl": [{"q_id": "0", "p_id": "mi", "score": 1}],
}


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "one"
    place.mkdir()
    for name, rows in FOLDER_OF_ONE.items():
        (place / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return place


def r2med(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "r2med", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, env=os.environ
    )


@pytest.fixture
def short_answers(tmp_path, monkeypatch):
    """A plugin with a card of the same model that writes little, so that a test takes seconds."""
    (tmp_path / "plugin" / "llms").mkdir(parents=True)
    card = LLMS.card("smollm2")
    (tmp_path / "plugin" / "llms" / "tiny.toml").write_text(
        f'model = "{card.model}"\nbackend = "local"\npackage = "{card.package}"\n'
        "max_tokens = 400\ncontext_length = 2048\n"
    )
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "hyde.case.txt").write_text("Name the diagnosis in one short sentence.\n{query}")
    monkeypatch.setenv("R2MED_PLUGINS", str(tmp_path / "plugin"))
    return tmp_path


def test_a_real_llm_in_process_expands_is_recorded_and_asked_once(folder, short_answers, forked):
    arguments = ["run", "bm25", "--expand", "hyde", "--llm", "tiny", "--data", folder]
    arguments += ["--prompts", short_answers / "prompts", "--out", short_answers / "out"]
    first = r2med(*arguments, cwd=short_answers)
    assert first.returncode == 0, first.stderr
    [path] = (short_answers / "out" / "one").glob("*.json")
    record = Record.read(path)
    assert record.system == "hyde(tiny) → bm25"
    assert record.llm["requests"] == 1
    assert record.llm_tokens > 20
    assert record.settings["expansion"]["templates"]
    again = forked(*arguments)
    assert "1 of them reused" in again.stdout, again.stderr
    assert Record.read(path) == record


def test_the_same_llm_behind_a_real_server_goes_the_same_way(folder, short_answers, tmp_path):
    with serve(gguf_file(LLMS.card("smollm2"), Setup()), name="any-name", threads=1) as base_url:
        options = Setup(base_url=base_url, prompts=short_answers / "prompts")
        store = Store(tmp_path / "store")
        system = System.parse("hyde(any-name) → bm25", replace(options, store=store))
        record = evaluate(system, folder, store=store)
        assert record.llm["requests"] == 1
        assert record.failures == 0 and record.llm["completion_tokens"] > 0
    # The server is gone: the journal answers.
    again = System.parse("hyde(any-name) → bm25", replace(options, store=store))
    assert evaluate(again, folder, store=store).mean == record.mean


def test_generations_are_written_in_the_original_s_layout_and_searched_without_an_llm(folder, short_answers, forked):
    made = forked("generate", "hyde", "--llm", "tiny", "--data", folder, "--prompts", short_answers / "prompts")
    assert made.returncode == 0, made.stderr
    file = short_answers / "generations" / "one" / "hyde" / "tiny" / "query_with_hydoc.jsonl"
    assert json.loads(file.read_text())["id"] == "0"
    arguments = ["run", "bm25", "--expand", "hyde", "--llm", "tiny", "--generations", "generations", "--data", folder]
    done = forked(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["system"] == "hyde(tiny) → bm25"


def test_a_dry_run_asks_nothing_and_shows_calls_cost_and_three_prompts(tmp_path, forked):
    done = forked("run", "bm25", "--expand", "hyde", "--llm", "o3-mini", "--data", "demo", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "64 calls" in done.stdout
    assert "$" in done.stdout
    assert done.stdout.count("--- prompt ") == 3
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run", "bm25", "--expand", "hyde"], "--llm"),
        (["run", "bm25", "--llm", "gpt4"], "--expand"),
        (["run", "bm25", "--expand", "hyd", "--llm", "gpt4"], "did you mean hyde"),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--data", "demo/Biology"], "OPENAI_API_KEY"),
        (["run", "bm25", "--expand", "hyde", "--llm", "gtp4", "--data", "demo/Biology"], "gtp4"),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--recorded", "--data", "demo/Biology"], "author"),
        (["run", "bm25", "--expand", "hyde", "--llm", "gpt4", "--prompts", "nowhere"], "nowhere"),
        (["run", "hyde(gpt4, samples=0) -> bm25"], "samples"),
        (["generate", "hyde", "--llm", "gtp4"], "did you mean gpt4"),
        (["generate", "rm3", "--llm", "gpt4"], "asks no LLM"),
        (["llms", "show", "gtp4"], "did you mean gpt4"),
        (["run", "bm25", "--recorded"], "--recorded is about texts of an LLM"),
        (["run", "bm25", "--base-url", "http://localhost:8000/v1"], "--base-url is about texts of an LLM"),
        (["run", "hyde(gpt4) -> bm25", "--llm-backend", "vlm"], "did you mean vllm"),
        (["generate", "hyde", "--llm", "gpt4", "--llm-backend", "vlm"], "did you mean vllm"),
        (["run", "hyde(gpt4) -> bm25", "--llm-backend", "vllm", "--base-url", "http://a"], "vllm runs gpt4 in this"),
    ],
)
def test_mistakes_about_llms_are_one_line(arguments, says, forked, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    done = forked(*arguments)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_the_list_of_llms_breaks_no_name_on_a_narrow_screen(forked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    listed = forked("llms", "list").stdout
    assert all(card.model in listed for card in LLMS.values())


def test_an_llm_is_shown_with_what_is_sent_to_it(forked):
    chat = json.loads(forked("llms", "show", "qwen-7b").stdout)
    assert (chat["temperature"], chat["seed"], chat["max_tokens"]) == (0.7, 42, 10240)
    assert "price" not in chat
    reasoning = json.loads(forked("llms", "show", "o3-mini").stdout)
    assert reasoning["price"] == {"prompt": 1.1, "completion": 4.4}
    assert "temperature" not in reasoning


def test_feedback_without_an_llm_runs_from_the_command_line(tmp_path):
    done = r2med(
        "run", "bm25", "--expand", "rm3", "--expand", "rocchio", "--data", "demo/Biology", "--json", cwd=tmp_path
    )
    assert [row["system"] for row in json.loads(done.stdout)] == ["rm3 → bm25", "rocchio → bm25"]
