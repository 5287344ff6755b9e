"""Multi-vector and sparse models give what the reference library gives, within the lengths of their cards."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import MissingExtraError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import MODELS, ModelCard, Side, resolve_card
from support import tiny_late_models
from support.tiny_models import TEXTS

if int(version("sentence-transformers").partition(".")[0]) < 6:
    pytest.skip("sentence-transformers 6 is not installed", allow_module_level=True)


@pytest.fixture(scope="module")
def colbert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_late_models.moderncolbert(tmp_path_factory.mktemp("models") / "colbert")


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_late_models.splade(tmp_path_factory.mktemp("models") / "splade")


def opened(folder: Path, loader: Any, query: int = 0, document: int = 0, **setup: Any) -> Any:
    card = ModelCard(
        name="late", loader=loader, query=Side(max_tokens=query), document=Side(max_tokens=document), similarity="dot"
    )
    return open_encoder(card, ANY_DATASET, Runtime(device="cpu", model_paths=(("late", folder),), **setup))


def test_token_vectors_are_those_of_the_library(colbert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import MultiVectorEncoder

    monkeypatch.setattr("r2med.models.encoders.late_models.TEXTS_AT_ONCE", 3)
    model = MultiVectorEncoder(str(colbert), device="cpu")
    encoder = opened(colbert, "multi-vector")
    for role, kind, tolerance, expected in (
        ("query", np.float32, 1e-5, model.encode_query(TEXTS)),
        ("document", np.float16, 1e-3, model.encode_document(TEXTS)),
    ):
        found = encoder.encode(TEXTS, role)
        assert len(found) == len(TEXTS) and found.cost.texts == len(TEXTS)
        for number, theirs in enumerate(expected):
            rows = found.rows("vectors", number)
            assert rows.dtype == kind
            np.testing.assert_allclose(rows, theirs.numpy(), atol=tolerance)
    assert len(found.rows("vectors", 9)) == 40  # of 200 words


def test_the_card_s_lengths_are_the_model_s(colbert: Path) -> None:
    encoder = opened(colbert, "multi-vector", query=20, document=30)
    short = encoder.encode(["heart attack"], "query").arrays["vectors"]
    assert len(short) == 12, "filled up with masks to the model's own length, not to the card's"
    assert len(encoder.encode(["the " * 200], "query").arrays["vectors"]) == 20
    fewer = opened(colbert, "multi-vector", query=8, document=30)
    assert {len(fewer.encode([text], "query").arrays["vectors"]) for text in ("heart", "the " * 200)} == {8}
    assert len(encoder.encode(["the " * 200], "document").arrays["vectors"]) == 30
    first = opened(colbert, "multi-vector", query=20, document=30).encode(["a"], "document").arrays["vectors"]
    np.testing.assert_array_equal(first, encoder.encode(["a"], "document").arrays["vectors"])


def test_weights_of_terms_are_those_of_the_library(splade: Path) -> None:
    from sentence_transformers import SparseEncoder

    model = SparseEncoder(str(splade), device="cpu")
    model.max_seq_length = 24
    encoder = opened(splade, "sparse", 24, 24)
    for role, expected in (("query", model.encode_query(TEXTS)), ("document", model.encode_document(TEXTS))):
        found = encoder.encode(TEXTS, role)
        for number, theirs in enumerate(expected.to_dense().numpy()):
            row = np.zeros_like(theirs)
            row[found.rows("terms", number)] = found.rows("weights", number)
            np.testing.assert_allclose(row, theirs, atol=1e-5)
            assert (found.rows("weights", number) != 0).all()


def test_a_folder_s_files_say_how_it_is_loaded(colbert: Path, splade: Path) -> None:
    late, sparse = resolve_card(f"path:{colbert}"), resolve_card(f"path:{splade}")
    assert (late.loader, late.query.prefix, late.similarity) == ("multi-vector", "[Q] ", "dot")
    assert (sparse.loader, sparse.query.prefix, sparse.similarity) == ("sparse", "", "dot")


def test_a_batch_that_does_not_fit_is_halved(colbert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = opened(colbert, "multi-vector")
    whole = encoder.encode(TEXTS, "document")
    model = encoder._model(encoder._card.document)
    rows, tried = model._rows, []

    def small_memory(texts: list[str], role: Any, prefix: str) -> Any:
        tried.append(model._batch)
        if model._batch > 8:
            raise RuntimeError("CUDA out of memory")
        return rows(texts, role, prefix)

    monkeypatch.setattr(model, "_rows", small_memory)
    np.testing.assert_allclose(encoder.encode(TEXTS, "document").arrays["vectors"], whole.arrays["vectors"], atol=1e-3)
    assert tried == [32, 16, 8]


def test_an_older_library_is_one_line_that_names_the_extra(
    colbert: Path, splade: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("r2med.models.encoders.late_models.version", lambda package: "4.1.0")
    for folder, loader in ((colbert, "multi-vector"), (splade, "sparse")):
        with pytest.raises(MissingExtraError, match=rf"model late \({loader}\) needs an optional part: .*\[models\]"):
            opened(folder, loader)


def test_late_models_have_cards() -> None:
    card = MODELS["reason-moderncolbert"]
    assert (card.loader, card.query.max_tokens, card.document.max_tokens) == ("multi-vector", 128, 8192)
    assert (MODELS["colbertv2:published"].query.max_tokens, MODELS["splade-v3"].similarity) == (32, "dot")
    assert (MODELS["splade-v3"].loader, MODELS["splade-v3"].document.max_tokens) == ("sparse", 512)
