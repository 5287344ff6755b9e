"""MTEB's results out: files where its cache has them, its measures, and one line for what is no task of its."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from r2med.data import load
from r2med.evaluation.records.record import Record
from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.core.errors import UserError
from r2med.publication.bridges.mteb_results import CUTOFFS, export_results
from support.datasets import random_folder
from support.fork_server import Command
from support.mteb_local import local_task, register_models


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A dataset of the benchmark, fetched from a hub that has few documents."""
    folder = random_folder(tmp_path / "hub/MedQA-Diag", documents=60)
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: folder)
    return "MedQA-Diag"


@pytest.fixture
def record(fetched: str, tmp_path: Path) -> Record:
    """A record on a dataset of the benchmark."""
    return evaluate("bm25", fetched, tmp_path / "results")


def test_files_lie_where_mteb_looks_for_them(record: Record, tmp_path: Path) -> None:
    [file] = export_results(["bm25"], tmp_path / "out", tmp_path / "results")
    folder = tmp_path / "out/results/r2med__bm25" / record.versions["r2med"]
    assert file == folder / "R2MEDMedQADiagRetrieval.json"
    meta = json.loads((folder / "model_meta.json").read_bytes())
    assert (meta["name"], meta["revision"]) == ("r2med/bm25", record.versions["r2med"])
    [settings] = map(json.loads, (folder / "run_settings.jsonl").read_text().splitlines())
    assert (settings["task"], settings["splits"], settings["subsets"]) == (file.stem, ["test"], ["default"])


def test_figures_are_those_of_the_record_to_six_places(record: Record, tmp_path: Path) -> None:
    [file] = export_results([], tmp_path / "out", tmp_path / "results")
    content = json.loads(file.read_bytes())
    [scores] = content["scores"]["test"]
    assert record.dataset.source == f"R2MED/MedQA-Diag@{content['dataset_revision']}"
    assert scores["main_score"] == scores["ndcg_at_10"] == round(record.mean["nDCG@10"], 6)
    for k in CUTOFFS:
        assert scores[f"recall_at_{k}"] == round(record.mean[f"R@{k}"], 6)
        firsts = [min(ranks.values()) for ranks in record.gold.values()]
        assert scores[f"hit_rate_at_{k}"] == pytest.approx(sum(first <= k for first in firsts) / 5, abs=1e-6)
        assert scores[f"mrr_at_{k}"] == pytest.approx(sum(1 / first for first in firsts if first <= k) / 5, abs=1e-6)


def test_several_repeats_are_one_result_with_their_means(record: Record, tmp_path: Path) -> None:
    stages = tuple(stage.model_copy(update={"varies": True}) for stage in record.stages)
    for repeat in range(3):
        scores = {query: {**each, "nDCG@10": repeat / 4, "R@1": repeat / 8} for query, each in record.per_query.items()}
        settings = {**record.settings, **({"repeat": repeat} if repeat else {})}
        changes = {"settings": settings, "per_query": scores, "stages": stages, "system": "x", "key": str(repeat) * 32}
        record.model_copy(update=changes).write(tmp_path / f"x/MedQA-Diag/x-{repeat:010x}.json")
    [file] = export_results([tmp_path / "x"], tmp_path / "out")
    [scores] = json.loads(file.read_bytes())["scores"]["test"]
    assert (scores["main_score"], scores["recall_at_1"]) == (0.25, 0.125)
    assert "means over 3 runs" in (file.parent / "run_settings.jsonl").read_text()


def test_mteb_reads_back_what_it_computes_itself_for_the_same_model(
    fetched: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mteb = register_models(tmp_path, monkeypatch)
    evaluate("mteb:org/bert", fetched, tmp_path / "results")
    [file] = export_results([], tmp_path / "out", tmp_path / "results")
    assert file.parent == tmp_path / "out/results/org__bert/r1"
    result = mteb.results.TaskResult.from_disk(file)
    model = mteb.get_model("org/bert", device="cpu")
    whole = mteb.evaluate(model, local_task(load(fetched)), cache=None, show_progress_bar=False)
    [ours], [theirs] = result.scores["test"], whole.task_results[0].scores["test"]
    assert result.get_score() == ours["main_score"]
    cache = mteb.cache.ResultCache(tmp_path / "out")
    [kept] = cache.load_results(["org/bert"], ["R2MEDMedQADiagRetrieval"], require_model_meta=True).model_results
    assert kept.task_results[0].get_score() == ours["main_score"]
    meta = mteb.models.ModelMeta.model_validate_json_resolved((file.parent / "model_meta.json").read_bytes())
    assert (meta.name, meta.revision) == ("org/bert", "r1")
    # How well scores tell good rankings from bad ones is not exported: no board shows it.
    compared = {name for name in theirs if not name.startswith("nauc")}
    assert compared == set(ours)
    for name in compared:
        if isinstance(theirs[name], float):  # which MTEB rounds to five places
            assert ours[name] == pytest.approx(theirs[name], abs=6e-6), name


def test_a_folder_that_is_called_like_a_task_is_not_exported_as_the_task(tmp_path: Path) -> None:
    evaluate("bm25", random_folder(tmp_path / "Biology", documents=60), tmp_path / "results")
    with pytest.raises(UserError, match="own/Biology is not a task of MTEB"):
        export_results([], tmp_path / "out", tmp_path / "results")


def test_a_record_of_older_versions_on_such_a_folder_is_not_exported_either(tmp_path: Path) -> None:
    evaluate("bm25", random_folder(tmp_path / "Biology", documents=60), tmp_path / "results")
    [path] = (tmp_path / "results").rglob("bm25-*.json")
    record = Record.read(path)
    record.model_copy(update={"dataset": record.dataset.model_copy(update={"name": "Biology"})}).write(path)
    with pytest.raises(UserError, match="own/Biology is not a task of MTEB"):
        export_results([], tmp_path / "out", tmp_path / "results")


def test_weights_from_a_folder_have_no_revision_for_mteb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A digest of ours looked like a commit of the model's repository, which has no such commit."""
    few = random_folder(tmp_path / "few", documents=3, queries=1)
    monkeypatch.setattr("r2med.data.hub.snapshot", lambda *_: few)
    evaluate("minilm", "MedQA-Diag", tmp_path / "results")
    [file] = export_results([], tmp_path / "out", tmp_path / "results")
    assert file.parent.name == "no_revision_available"
    assert json.loads((file.parent / "model_meta.json").read_bytes())["revision"] == "no_revision_available"


def test_what_is_no_task_of_mteb_is_told(tmp_path: Path) -> None:
    evaluate("bm25", "demo/MedQA-Diag", tmp_path / "results")
    with pytest.raises(UserError, match="demo/MedQA-Diag is not a task of MTEB, which has Biology, "):
        export_results([], tmp_path / "out", tmp_path / "results")
    assert not (tmp_path / "out").exists()


def test_two_systems_that_would_have_one_place_are_told(record: Record, fetched: str, tmp_path: Path) -> None:
    [run] = (tmp_path / "results").rglob("*.trec.gz")
    for name in ("a", "b"):
        copy = tmp_path / name / "run.trec.gz"
        copy.parent.mkdir()
        copy.write_bytes(run.read_bytes())
        evaluate(f"run:{copy}", fetched, tmp_path / "runs")
    with pytest.raises(UserError, match=r"a/run.trec.gz and run:\S+b/run.trec.gz are one model to MTEB, r2med/run"):
        export_results([], tmp_path / "out", tmp_path / "runs")


def test_a_record_of_another_version_is_told(record: Record, tmp_path: Path) -> None:
    [path] = (tmp_path / "results").rglob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_bytes()), "format": 1}))
    with pytest.raises(UserError, match=r"format 1, but this version reads format \d: make it again with"):
        export_results([path], tmp_path / "out", tmp_path / "results")
    assert not (tmp_path / "out").exists()


def test_the_command_prints_the_files(record: Record, tmp_path: Path, r2med: Command) -> None:
    ended = r2med(
        "records", "export", "--format", "mteb", "bm25", "--results", tmp_path / "results", "-o", tmp_path / "out"
    )
    assert ended.stdout.strip().endswith("R2MEDMedQADiagRetrieval.json")
