"""MTEB's predictions in: a record with our scores, which compares like any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from r2med.data import load
from r2med.data.runs import Run
from r2med.evaluation.records.collection import collect
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.publication.bridges.mteb_predictions import score_predictions
from support.datasets import random_folder
from support.fork_server import Command
from support.mteb_local import local_task, register_models


@pytest.fixture
def mini(tmp_path: Path) -> Path:
    return random_folder(tmp_path / "mini", documents=60)


def predictions(folder: Path, mini: Path) -> Path:
    """Write what BM25 found as MTEB would have written it."""
    evaluate("bm25", mini, folder / "results")
    [run] = (folder / "results").rglob("*.trec.gz")
    rankings = {query: dict(ranking) for query, ranking in Run.read(run)}
    file = folder / "R2MEDMedQADiagRetrieval_predictions.json"
    meta = {"model_name": "org/model", "revision": "r"}
    file.write_text(json.dumps({"mteb_model_meta": meta, "default": {"test": rankings}}))
    return file


def test_predictions_score_as_the_run_they_are(tmp_path: Path, mini: Path) -> None:
    file = predictions(tmp_path, mini)
    record = score_predictions(file, mini, tmp_path / "results")
    together = collect([], tmp_path / "results")
    assert len(together.systems) == 2 and together.datasets == ("mini",)
    kept = together.cell("bm25", "mini")
    assert kept is not None and kept.record.mean == record.mean and kept.record.gold == record.gold
    assert record.run is not None and record.system.endswith("mteb/org__model")
    assert "#" not in (tmp_path / "results/mteb/org__model/mini.trec").read_text()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"default": {"test": {}}}, "does not hold predictions"),
        ([], "does not hold predictions"),
        ({"task_name": "T", "mteb_version": "1.9.0", "scores": {"test": [{}]}}, "which MTEB 2 writes with prediction_"),
        ({"mteb_model_meta": {"model_name": "m"}, "default": {"test": [1]}}, "does not hold predictions"),
        ({"mteb_model_meta": {"model_name": "m"}, "default": {"dev": {}, "test": {}}}, "of 2 splits"),
        ({"mteb_model_meta": {"model_name": "m"}, "default": {"test": {"q0": {"nowhere": 1}}}}, "not in the corpus"),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(tmp_path: Path, mini: Path, content: Any, message: str) -> None:
    file = tmp_path / "T_predictions.json"
    file.write_text(json.dumps(content))
    with pytest.raises(UserError, match=message):
        score_predictions(file, mini, tmp_path / "results")


def test_a_folder_is_told_apart_from_a_file(tmp_path: Path, mini: Path) -> None:
    with pytest.raises(UserError, match=r"is a folder: name a file TASK_predictions.json in it"):
        score_predictions(tmp_path, mini, tmp_path / "results")


def test_what_mteb_itself_writes_scores_as_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mini: Path) -> None:
    mteb = register_models(tmp_path, monkeypatch)
    task, model = local_task(load(mini)), mteb.get_model("org/bert", device="cpu")
    whole = mteb.evaluate(model, task, cache=None, show_progress_bar=False, prediction_folder=tmp_path / "predictions")
    record = score_predictions(tmp_path / "predictions/Local_predictions.json", mini, tmp_path / "results")
    assert record.mean["nDCG@10"] == pytest.approx(whole.task_results[0].get_score(), abs=6e-6)


def test_a_task_that_is_not_of_this_benchmark_needs_its_dataset(tmp_path: Path, mini: Path) -> None:
    file = predictions(tmp_path, mini).rename(tmp_path / "NFCorpus_predictions.json")
    with pytest.raises(UserError, match=r"no task of MTEB 'NFCorpus'.*--data"):
        score_predictions(file, out=tmp_path / "results")


def test_the_command_names_what_comes_next(tmp_path: Path, mini: Path, r2med: Command) -> None:
    ended = r2med("records", "import", predictions(tmp_path, mini), "--data", mini, "-o", tmp_path / "results")
    assert "nDCG@10" in ended.stdout and "r2med compare --results" in ended.stdout
