"""HyDE end to end with a real small LLM: in process, behind a real server, written to files and read back."""

import json

import pytest

from r2med import evaluate
from r2med.evaluation.records.record import Record
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.llm.llama import gguf_file
from r2med.models.llm.llm_cards import LLMS
from r2med.systems.system import System
from support.datasets import r2med_folder
from support.facts import states
from support.llama_server import serve

pytestmark = pytest.mark.slow

DOCUMENTS = [
    {"id": "mi", "text": "Acute myocardial infarction with ST elevation needs reperfusion."},
    {"id": "tax", "text": "The tax law of partnerships."},
]
QUERIES = [{"id": "0", "text": "Crushing chest pain, sweating and ST elevation. What is the diagnosis?"}]
QRELS = [{"q_id": "0", "p_id": "mi", "score": 1}]


@pytest.fixture
def folder(tmp_path):
    return r2med_folder(tmp_path / "one", DOCUMENTS, QUERIES, QRELS)


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


def test_a_real_llm_in_process_expands_is_recorded_and_asked_once(folder, short_answers, r2med):
    arguments = ["run", "bm25", "--expand", "hyde", "--llm", "tiny", "--data", folder]
    arguments += ["--prompts", short_answers / "prompts", "--out", short_answers / "out"]
    first = r2med(*arguments)
    assert first.returncode == 0, first.stderr
    [path] = (short_answers / "out" / "one").glob("*.json")
    record = Record.read(path)
    expansion = record.stages[0]
    assert expansion.name == f"hyde(tiny, prompts={short_answers / 'prompts'})"
    assert (expansion.cost.calls, expansion.failures) == (1, 0)
    assert expansion.cost.completion_tokens > 0
    again = r2med(*arguments)
    assert "reused" in again.stdout, again.stderr
    assert Record.read(path).model_copy(update={"named": record.named}) == record


def test_the_same_llm_behind_a_real_server_goes_the_same_way(folder, short_answers, store):
    with serve(gguf_file(LLMS.card("smollm2"), Setup()), name="any-name", threads=1) as base_url:
        options = Runtime(base_url=base_url, prompts=str(short_answers / "prompts"))
        system = System.parse("hyde(any-name) → bm25", options.with_settings(store=store))
        record = evaluate(system, folder, store=store)
        expansion = record.stages[0]
        assert (expansion.cost.calls, expansion.failures) == (1, 0)
        assert expansion.cost.completion_tokens > 0
    # The server is gone: the journal answers.
    again = System.parse("hyde(any-name) → bm25", options.with_settings(store=store))
    assert evaluate(again, folder, store=store).mean == record.mean


def test_generations_are_written_in_the_original_s_layout_and_searched_without_an_llm(folder, short_answers, r2med):
    made = r2med("generate", "hyde", "--llm", "tiny", "--data", folder, "--prompts", short_answers / "prompts")
    assert made.returncode == 0, made.stderr
    file = short_answers / "generations" / "one" / "hyde" / "tiny" / "query_with_hydoc.jsonl"
    assert json.loads(file.read_text())["id"] == "0"
    arguments = ["run", "bm25", "--expand", "hyde", "--llm", "tiny", "--generations", "generations", "--data", folder]
    done = r2med(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[0]["system"] == "hyde(tiny) → bm25"


def test_a_query_that_a_real_llm_rewrote_is_searched_alone_or_counted_as_a_failure(folder, short_answers, r2med):
    (short_answers / "prompts" / "rewrite.txt").write_text("Name the disease in a few words.\n{query}")
    arguments = ["run", "rewrite(tiny) → bm25", "--data", folder, "--prompts", short_answers / "prompts"]
    arguments += ["--out", short_answers / "out"]
    first = r2med(*arguments)
    assert first.returncode == 0, first.stderr
    [path] = (short_answers / "out" / "one").glob("*.json")
    expansion = Record.read(path).stages[0]
    texts = list((short_answers / "out" / "one").glob("*.generated.jsonl"))
    assert (expansion.cost.calls, len(texts)) == (1, 1 - expansion.failures), first.stdout
    assert r2med(*arguments).returncode == 0
    assert Record.read(path).stages[0] == expansion, "it was asked once"


PROMPT = """Does the text answer the question? 3: yes. 0: no.
Question: {query}
Text: {text}
Reply with {"why": "reason", "grade": 0} or {"why": "reason", "grade": 3}."""


def test_a_real_small_llm_fails_its_controls_and_the_error_is_one_line(short_answers, r2med):
    card = short_answers / "plugin" / "llms" / "tiny.toml"
    card.write_text(card.read_text().replace("max_tokens = 400", "max_tokens = 60"))
    topics = [f"disease{number}" for number in range(20)]
    documents = [{"id": topic, "text": f"Rest and water cure {topic}."} for topic in topics]
    documents += [{"id": f"{topic}-b", "text": f"Nobody knows why {topic} begins."} for topic in topics]
    queries = [{"id": topic, "text": f"What cures {topic}?"} for topic in topics]
    data = r2med_folder(
        short_answers / "ward", documents, queries, [{"q_id": topic, "p_id": topic, "score": 1} for topic in topics]
    )
    ran = r2med("run", "bm25", "--data", data, "--out", short_answers / "results")
    assert ran.returncode == 0, ran.stderr
    (short_answers / "prompt.txt").write_text(PROMPT)
    overlay = short_answers / "judged.jsonl"
    words = ["judge", "--llm", "tiny", "--results", short_answers / "results", "--data", data, "--out", overlay]
    judged = r2med(*words, "--prompt", short_answers / "prompt.txt")
    assert judged.returncode == 2
    (line,) = [line for line in judged.stderr.splitlines() if "tiny cannot judge ward" in line]
    states(line, "controls", "another LLM")
    assert not overlay.exists()
