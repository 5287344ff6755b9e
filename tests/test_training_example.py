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
from support.datasets import write_jsonl

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


READERS = {
    "flagembedding": """
import sys
from FlagEmbedding.abc.finetune.embedder.AbsArguments import AbsEmbedderDataArguments
from FlagEmbedding.abc.finetune.embedder.AbsDataset import AbsEmbedderTrainDataset
read = AbsEmbedderTrainDataset(AbsEmbedderDataArguments(train_data=[sys.argv[1]], train_group_size=3), None)
query, passages, _ = read[0]
print(len(read), query, *passages, sep="|")
""",
    "trl": """
import sys
from datasets import load_dataset
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM
from trl import SFTConfig, SFTTrainer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[2])
tokenizer.eos_token = tokenizer.pad_token = "[SEP]"
sizes = dict(hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1)
model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes))
rows = load_dataset("json", data_files=sys.argv[1], split="train")
trainer = SFTTrainer(model, SFTConfig(output_dir=sys.argv[3], report_to="none", use_cpu=True, bf16=False,
                                      per_device_train_batch_size=1, max_steps=1), train_dataset=rows,
                     processing_class=tokenizer)
trainer.train()
[row] = trainer.train_dataset
learned = [label != -100 for label in row["labels"]]  # the prompt is not
print(len(row["input_ids"]), sum(learned), sep="|")
""",
}


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with FlagEmbedding and trl alone: what they need beside them is installed here."""
    for library in ("datasets", "accelerate", "peft"):
        pytest.importorskip(library)
    folder = tmp_path_factory.mktemp("libraries")
    packages = ["FlagEmbedding==1.4.2", "trl==1.16.0"]
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"FlagEmbedding and trl cannot be installed here: {done.stderr.strip().splitlines()[-1]}")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("form", READERS)
def test_flagembedding_and_trl_read_their_files(form: str, libraries: Path, tmp_path: Path) -> None:
    from support import tiny_models

    texts = {"a": "gout of the toe", "b": "scurvy of the gums", "d": "tax law"}
    own = tmp_path / "own"
    asked = {"id": "q", "text": "why does it hurt", "reasoning": "The toe points to gout."}
    write_jsonl(own / "query.jsonl", [asked])
    write_jsonl(own / "corpus.jsonl", [{"id": name, "text": each} for name, each in texts.items()])
    grades = {"a": 1, "b": 0, "d": 0}
    write_jsonl(own / "qrels.jsonl", [{"q_id": "q", "p_id": name, "score": grade} for name, grade in grades.items()])
    r2med.training_data(str(own), tmp_path / "train", formats=form)
    base = tiny_models.sentence_bert(tmp_path / "tiny")
    words = [str(tmp_path / "train" / f"{form}.jsonl"), str(base), str(tmp_path / "out")]
    cache = {"HF_DATASETS_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""}
    here = {**os.environ, **cache, "PYTHONPATH": str(libraries)}
    done = subprocess.run([sys.executable, "-c", READERS[form], *words], env=here, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = done.stdout.strip().splitlines()[-1].split("|")
    if form == "flagembedding":
        assert found[:2] == ["1", asked["text"]] and sorted(found[2:]) == sorted(texts.values())
    else:
        assert 0 < int(found[1]) < int(found[0])
