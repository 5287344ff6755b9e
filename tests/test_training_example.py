"""examples/train.py as the docs use it: training, resuming after a kill, and the proof, with real weights."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import r2med
from r2med.models.encoders.model_cards import MODELS
from r2med.models.encoders.weights import find

SCRIPT = Path(__file__).parents[1] / "examples" / "train.py"
LINES = 60


def test_the_script_is_short() -> None:
    assert len(SCRIPT.read_text(encoding="utf-8").splitlines()) <= LINES


@pytest.mark.slow
def test_a_killed_training_goes_on_and_each_fold_is_tested_by_the_model_that_has_not_seen_it(tmp_path: Path) -> None:
    for library in ("datasets", "accelerate", "sentence_transformers"):
        pytest.importorskip(library)
    base = find(MODELS["minilm"], r2med.Setup()).fetch()
    r2med.training_data("demo/Biology", tmp_path / "train", folds=2)
    words = ["--base", str(base), "--epochs", "2", "--batch", "8"]
    command = [sys.executable, str(SCRIPT), str(tmp_path / "train"), str(tmp_path / "models"), *words]
    here = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, env=here, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as killed:
        while not list((tmp_path / "models").glob("seed-0/fold-1/checkpoints/checkpoint-*/trainer_state.json")):
            assert killed.poll() is None, "it ended before its first checkpoint"
            time.sleep(0.1)
        killed.send_signal(signal.SIGKILL)
    done = subprocess.run(command, env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    system = f"folds:{tmp_path / 'models'}"
    r2med.run([system, "minilm"], "demo/Biology", out=tmp_path / "results")
    compared = r2med.compare(system, "minilm", results=tmp_path / "results", baseline="minilm")
    assert len(compared.pairs) == 1


@pytest.mark.slow
@pytest.mark.parametrize("flags", [("--cross",), ("--lora",)], ids=("cross-encoder", "LoRA"))
def test_a_cross_encoder_and_an_adapter_are_trained_by_the_same_script(flags: tuple[str, ...], tmp_path: Path) -> None:
    from support import tiny_models

    for library in ("datasets", "accelerate", *(["peft"] if "--lora" in flags else [])):
        pytest.importorskip(library)
    r2med.training_data("demo/Biology", tmp_path / "train", folds=2)
    base = tiny_models.sentence_bert(tmp_path / "tiny")
    words = [
        str(tmp_path / "train"),
        str(tmp_path / "models"),
        "--base",
        str(base),
        "--epochs",
        "1",
        "--seeds",
        "2",
        *flags,
    ]
    here = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, str(SCRIPT), *words], env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    folds = f"folds:{tmp_path / 'models'}"
    system = f"bm25 → {folds}@5" if "--cross" in flags else folds
    assert len(r2med.run(system, "demo/Biology", out=tmp_path / "results", repeats=2).records) == 2


@pytest.mark.slow
def test_the_training_libraries_read_the_files(tmp_path: Path) -> None:
    """Read each format as its library does: by datasets, into the columns that its trainer looks for."""
    datasets = pytest.importorskip("datasets")
    texts = {"a": "gout of the toe", "b": "scurvy of the gums", "c": "rickets of the bones", "d": "tax law"}
    own = r2med.Dataset.of({"q": "why does it hurt"}, texts, {"q": {"a": 1, "b": 0, "d": 0}})
    forms = ["triplets", "negatives", "listwise", "flagembedding"]
    r2med.training_data(own, tmp_path / "train", formats=forms, negatives=2)

    def columns(form: str) -> dict[str, list[object]]:
        file = str(tmp_path / "train" / f"{form}.jsonl")
        read = datasets.load_dataset("json", data_files=file, split="train", cache_dir=str(tmp_path / "cache"))
        return {name: read[name][:] for name in read.column_names}

    assert columns("triplets").keys() == {"anchor", "positive", "negative"}
    assert columns("negatives").keys() == {"anchor", "positive", "negative_1", "negative_2"}
    assert columns("listwise")["labels"] == [[1.0, 0.0, 0.0]]
    assert columns("flagembedding")["neg"] == [[texts["b"], texts["d"]]]
