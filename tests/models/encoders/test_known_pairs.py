"""A model that would give wrong vectors is refused: by its card's versions, and by pairs that belong together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import safetensors.torch
import transformers

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Encoder, open_encoder, receiving
from r2med.models.encoders.known_pairs import KIND
from r2med.models.encoders.model_cards import MODELS, ModelCard, Side
from support import tiny_models

PAIRS = tuple(
    (f"{text}?", f"{text}.")
    for text in (
        "which bacteria live in the gut of people who eat bread every day",
        "tax law and doctors in towns with small hospitals and few nurses",
        "hereditary angioedema of the face after a fall in early childhood",
    )
)
"""Long texts, so that a tiny model of random weights puts each query beside its passage."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.bert(tmp_path_factory.mktemp("models") / "tiny", layers=1)


@pytest.fixture(scope="module")
def broken(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the same model with weights that no longer tell words apart; it loads and encodes without an error."""
    copied = tmp_path_factory.mktemp("broken") / "tiny"
    shutil.copytree(folder, copied)
    tensors = safetensors.torch.load_file(copied / "model.safetensors")
    for name in tensors:
        if name.endswith(("word_embeddings.weight", "position_embeddings.weight")):
            tensors[name].zero_()
    safetensors.torch.save_file(tensors, copied / "model.safetensors", {"format": "pt"})
    return copied


def opened(folder: Path, store: Store, **fields: object) -> Encoder:
    card = ModelCard(
        name="tiny",
        loader="transformers",
        pooling="mean",
        query=Side(max_tokens=40),
        document=Side(max_tokens=40),
        **{"known_pairs": PAIRS, **fields},  # type: ignore[arg-type]
    )
    return open_encoder(card, ANY_DATASET, Runtime(device="cpu", model_paths=(("tiny", folder),), store=store))


def test_a_model_that_passes_its_pairs_encodes_and_is_not_tested_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    assert opened(folder, store).encode(["tax law"], "query").vectors.shape == (1, 32)
    assert len(list((tmp_path / KIND).glob("*/"))) == 1
    monkeypatch.setattr("r2med.models.encoders.known_pairs.check_pairs", lambda *_: pytest.fail("it was tested again"))
    opened(folder, store).encode(["tax law"], "document")


def test_broken_weights_are_one_line_and_are_refused_every_time(broken: Path, tmp_path: Path) -> None:
    encoder = opened(broken, Store(tmp_path))
    for _ in range(2):
        with pytest.raises(UserError, match="of 3 known queries are not nearest to their own passage") as caught:
            encoder.encode(["tax law"], "query")
        assert f"transformers {transformers.__version__}" in str(caught.value)
        assert "its weights may be damaged" in str(caught.value)


def test_the_line_names_the_versions_that_work_and_makes_an_environment(broken: Path, tmp_path: Path) -> None:
    encoder = opened(broken, Store(tmp_path), transformers="<1000")
    line = (
        r"it works with transformers<1000: python -m venv tiny-env && "
        r"tiny-env/bin/pip install torch 'transformers<1000' sentence-transformers -e \. in the clone"
    )
    with pytest.raises(UserError, match=line):
        encoder.encode(["tax law"], "query")


def test_another_version_is_another_test(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    opened(folder, store).encode(["a"], "query")
    monkeypatch.setattr("r2med.models.encoders.known_pairs.version", lambda package: "99.0")
    opened(folder, store).encode(["a"], "query")
    assert len(list((tmp_path / KIND).glob("*/"))) == 2


def test_a_version_out_of_bounds_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_text("no weights")
    (tmp_path / "tokenizer.json").write_text("no tokenizer")
    for fields, package in (({"transformers": "<1"}, "transformers"), ({"sentence_transformers": "<1"}, "sentence-")):
        with pytest.raises(
            UserError, match=rf"model tiny works with {package}.*<1, and .* is installed: python -m venv"
        ):
            opened(tmp_path, Store(tmp_path / "store"), **fields).encode(["a"], "query")


def test_the_test_s_texts_are_not_taken_for_the_caller_s(folder: Path, tmp_path: Path) -> None:
    received: list[int] = []
    with receiving(received.append):
        opened(folder, Store(tmp_path)).encode(["tax law", "a"], "query")
    assert sum(received) == 2


def test_models_whose_code_breaks_silently_name_versions_and_pairs() -> None:
    for name in ("gte-qwen2", "inf", "inf-pro", "reasonir", "nv-reasoning"):
        assert MODELS[name].transformers == "<5"
        assert len(MODELS[name].known_pairs) == 4
    assert MODELS["nv"].transformers == MODELS["nv:published"].transformers == ">=4.46,<4.47"
    assert not MODELS["grit"].transformers  # run by our own mask, not by its code


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"known_pairs": [("a", "b")]}, "two pairs or more"),
        ({"transformers": "newer"}, "write them like <5"),
        ({"known_pairs": PAIRS, "loader": "sparse"}, "known_pairs are not tested with the loader sparse"),
    ],
)
def test_a_card_that_tests_nothing_is_refused(fields: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ModelCard(**{"name": "x", "loader": "transformers", **fields})  # type: ignore[arg-type]
