"""A pack of trained models of folds: records, rankings and lineage go to another machine, the models stay."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import r2med
from r2med import Setup
from r2med.foundation.store import Store
from support import tiny_models
from support.datasets import write_jsonl
from support.facts import error_states, some_states


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, its folds, and models of two seeds."""
    root = tmp_path_factory.mktemp("folds")
    words = [f"{a}{b}{c}" for a in "bdfg" for b in "aeiou" for c in "lmnrst"]
    texts = [" ".join(words[30 * number : 30 * number + 15]) for number in range(4)]
    write_jsonl(root / "mine" / "query.jsonl", [{"id": f"q{n}", "text": " ".join(words[n::9])} for n in range(4)])
    write_jsonl(root / "mine" / "corpus.jsonl", [{"id": f"d{n}", "text": text} for n, text in enumerate(texts)])
    write_jsonl(root / "mine" / "qrels.jsonl", [{"q_id": f"q{n}", "p_id": f"d{n}", "score": 1} for n in range(4)])
    r2med.training_data(str(root / "mine"), root / "train", folds=2)
    for place in (f"seed-{seed}/fold-{fold}" for seed in range(2) for fold in (1, 2)):
        tiny_models.sentence_bert(root / "models" / place, layers=1)
        shutil.copy(root / "train" / place[-6:] / "training.json", root / "models" / place)
    shutil.copy(root / "train" / "folds.jsonl", root / "models")
    return root


def test_records_of_folds_are_packed_and_compared_elsewhere(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(here)
    setup = Setup(store=Store(tmp_path / "store"))
    r2med.run(["folds:models", "bm25"], "mine", out=tmp_path / "results", setup=setup, repeats=2)
    r2med.pack(tmp_path / "results", out=tmp_path / "folds.r2pack", data=["mine"], setup=setup)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    other = Setup(store=Store(tmp_path / "other"))
    done = r2med.unpack(tmp_path / "folds.r2pack", out=elsewhere / "results", setup=other)
    assert {"r2med run folds:models --data mine --repeats 2", "r2med run bm25 --data mine"} <= set(done.commands)
    compared = r2med.compare(results=elsewhere / "results")
    assert {standing.system: standing.runs for standing in compared.systems} == {"folds:models": 2, "bm25": 1}
    some_states(compared.notices, "folds:models", "trained on mine", "no overlap")
    r2med.submit(["folds:models"], elsewhere / "entry.json", elsewhere / "results")
    checked = r2med.verify(elsewhere / "entry.json", elsewhere / "results", str(here / "mine"))
    assert [each.fault for each in checked] == ["", ""]
    [[cell]] = r2med.run("folds:models", str(here / "mine"), setup=other).rows
    assert "no such folder" in cell.error
    shutil.copytree(here / "models", elsewhere / "models")
    again = r2med.run("folds:models", str(here / "mine"), out=elsewhere / "results", setup=other, repeats=2)
    assert [cell.reused for [cell] in again.rows] == [2]


def test_a_path_of_this_machine_is_not_packed(here: Path, tmp_path: Path) -> None:
    setup = Setup(store=Store(tmp_path / "store"))
    r2med.run(f"folds:{here}/models", str(here / "mine"), out=tmp_path / "results", setup=setup)
    with error_states("path", "folds:models", "folder"):
        r2med.pack(tmp_path / "results", out=tmp_path / "folds.r2pack", data=[str(here / "mine")], setup=setup)
