"""`r2med cache`: what is kept is listed and cleared by what it is of."""

import json
from pathlib import Path

import pytest

from r2med import run
from r2med.foundation.store import default_store
from r2med.models.llm.chat import RawAnswer
from support.chat_models import save_answer
from support.datasets import r2med_folder
from support.facts import some_states, states
from support.fork_server import Command


class Lengths:
    """Encodes a text as its length."""

    revision = "1"

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [[1, len(text)] for text in texts]


def test_what_is_kept_is_cleared_by_dataset_and_model(r2med: Command) -> None:
    def kept() -> set[tuple[str, str, str]]:
        listed = json.loads(r2med("cache", "list", "--format", "json").stdout)["kept"]
        return {(holding["kind"], holding["dataset"], holding["model"]) for holding in listed}

    datasets, model = ("demo/Biology", "demo/MedQA-Diag"), f"py:{__name__}:Lengths"
    run(["bm25", Lengths()], datasets, out=None)
    before = kept()
    assert {("vectors", dataset, model) for dataset in datasets} <= before
    assert ("bm25-postings", "demo/Biology", "") in before
    some_states(r2med("cache", "clear", "--model", model).stdout.splitlines(), "--yes")
    assert kept() == before
    r2med("cache", "clear", "--model", model, "--dataset", "demo/Biology", "--yes")
    assert before - kept() == {(kind, "demo/Biology", model) for kind in ("vectors", "query-vectors")}
    r2med("cache", "clear", "--all", "--yes")
    assert kept() == set()
    assert not run("bm25", "demo/Biology", out=None).errors


def test_answers_of_an_llm_are_listed_and_forgotten_by_its_name(r2med: Command) -> None:
    keys = {name: bytes([number]) * 16 for number, name in enumerate(("gpt4", "o3-mini"))}
    for name, key in keys.items():
        save_answer(default_store(), key, name, RawAnswer("text"))
    assert json.loads(r2med("cache", "list", "--format", "json").stdout)["answers"] == {"gpt4": 1, "o3-mini": 1}
    states(r2med("cache", "clear", "--llm", "gpt4", "--yes").stdout, "1 answer", "gpt4", "removed")
    assert json.loads(r2med("cache", "list", "--format", "json").stdout)["answers"] == {"o3-mini": 1}


@pytest.mark.parametrize(
    ("words", "facts"),
    [([], ["--dataset NAME"]), (["--llm", "gpt5"], ["no answers", "'gpt5'"])],
)
def test_what_cannot_be_cleared_is_told_in_one_line(r2med: Command, words: list[str], facts: list[str]) -> None:
    done = r2med("cache", "clear", *words)
    assert done.returncode == 2
    states(done.stderr, *facts)


@pytest.mark.parametrize(
    ("words", "facts"),
    [
        (("--dataset", "demo/Biolgy"), ["'demo/Biolgy'", "demo/Biology?"]),
        (("--model", "nonesuch"), ["'nonesuch'", "none"]),
    ],
)
def test_clearing_what_is_not_kept_is_an_error(r2med: Command, words: tuple[str, str], facts: list[str]) -> None:
    run("bm25", "demo/Biology", out=None)
    done = r2med("cache", "clear", *words, "--yes")
    assert done.returncode == 2
    states(done.stderr, *facts)


@pytest.mark.parametrize("words", ["list datasets", "list llms", "list models", "list stages", "cache list"])
def test_every_list_is_json_on_request(r2med: Command, words: str) -> None:
    assert json.loads(r2med(*words.split(), "--format", "json").stdout)


def test_results_and_boards_with_texts_of_a_dataset_are_listed_and_deleted(r2med: Command, tmp_path: Path) -> None:
    folder = r2med_folder(tmp_path / "ward")
    (tmp_path / "said.jsonl").write_text(json.dumps({"when": [], "answer": "zorbluxtext of an LLM"}) + "\n")
    asked = ("--model-path", "m=said.jsonl", "--llm-backend", "scripted")
    for words in (
        ("run", "bm25", "hyde(m) → bm25", "--data", folder, "--data", "demo/Biology", *asked),
        ("board", "--data", folder, "--out", "board"),
        ("board", "--data", folder, "--without-texts", "--out", "bare"),
    ):
        done = r2med(*map(str, words))
        assert done.returncode == 0, done.stderr
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    command = ("cache", "clear", "--dataset", "ward", "--results", "results", "--results", ".")
    counted = r2med(*command).stdout.splitlines()
    some_states(counted, "results/ward/", "3 files")
    assert len(counted) < 20, "a board has hundreds of files, which are counted by folder"
    listed = r2med(*command, "--format", "json").stdout
    assert "hyde" in listed and "generated.jsonl" in listed and "board/data/explorer" in listed
    assert "bare/" not in listed and "Biology" not in listed
    assert {path for path in tmp_path.rglob("*") if path.is_file()} >= before
    assert r2med(*command, "--yes").returncode == 0
    left = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert not [path for path in left if "ward" in path.parts and "hyde" in path.name]
    assert not (tmp_path / "board").exists() or not list((tmp_path / "board").rglob("*.js"))
    assert list((tmp_path / "results" / "ward").glob("bm25-*.json")), "a record without texts stays"
    assert list((tmp_path / "bare").rglob("*.js"))
    assert list((tmp_path / "results").rglob("Biology/*hyde*.generated.jsonl"))
    wrong = r2med("cache", "clear", "--all", "--results", "results")
    assert wrong.returncode == 2
    states(wrong.messages[0], "--results", "dataset")
