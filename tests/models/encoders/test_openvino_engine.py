"""A real model, all-MiniLM-L6-v2, from text to vectors, on torch and on OpenVINO."""

import importlib.util
import subprocess
import sys

import numpy as np
import pytest

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import weights
from r2med.models.encoders.encoder import open_encoder
from r2med.models.encoders.model_cards import MODELS, ModelCard, Side
from support.tiny_models import SENTENCES, TEXTS

ALL = TEXTS + SENTENCES


def minilm(**options):
    return open_encoder(MODELS.card("minilm"), ANY_DATASET, Runtime(**{"device": "cpu", **options}))


@pytest.fixture(scope="module")
def vectors():
    return minilm().encode(ALL, "document").vectors


def test_a_heart_attack_is_nearer_to_an_infarction_than_to_tax_law():
    query = minilm().encode(["heart attack"], "query").vectors[0]
    infarction, tax = minilm().encode(["myocardial infarction", "tax law"], "document").vectors
    assert query @ infarction > 0.5 > 0.2 > query @ tax


@pytest.mark.slow
def test_it_equals_sentence_transformers(vectors):
    from sentence_transformers import SentenceTransformer

    folder = weights.find(MODELS["minilm"], Setup()).fetch()
    wanted = SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(ALL, show_progress_bar=False)
    np.testing.assert_allclose(vectors, wanted, atol=1e-5)


@pytest.mark.slow
def test_the_sentence_transformers_loader_gives_the_same(vectors):
    folder = weights.find(MODELS["minilm"], Setup()).fetch()
    card = ModelCard(
        name="minilm",
        loader="sentence-transformers",
        repository=str(folder),
        query=Side(max_tokens=0),
        document=Side(max_tokens=0),
    )
    np.testing.assert_allclose(
        open_encoder(card, ANY_DATASET, Runtime(device="cpu")).encode(ALL, "query").vectors, vectors, atol=1e-5
    )


@pytest.mark.slow
def test_another_engine_gives_the_same_vectors(vectors):
    if importlib.util.find_spec("openvino") is None:
        with pytest.raises(UserError, match="pip install"):
            minilm(backend="openvino")
        return
    encoder = minilm(backend="openvino")
    assert ((encoder.encode(ALL, "document").vectors * vectors).sum(axis=1) >= 0.9999).all()
    assert encoder.key("document")["backend"] == "openvino"
    assert encoder.key("document") != minilm().key("document")


def test_openvino_reports_nothing_to_its_makers():
    pytest.importorskip("openvino")
    code = """if True:
        from r2med.models.encoders.devices import load_openvino
        load_openvino()
        from openvino.tools.ovc import convert_impl
        print(convert_impl.tm.__name__)
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "openvino.tools.ovc.telemetry_stub"


def test_another_engine_reads_pairs(tmp_path):
    from support import tiny_models

    pytest.importorskip("openvino")
    folder = tiny_models.bert(tmp_path / "bert", layers=1)
    card = ModelCard(
        name="tiny", loader="transformers", pooling="cls", document=Side(max_tokens=48, pair_with_empty=True)
    )
    plain, fast = (
        open_encoder(card, ANY_DATASET, Runtime(device="cpu", backend=backend, model_paths=(("tiny", folder),)))
        for backend in ("torch", "openvino")
    )
    wanted, found = plain.encode(TEXTS, "document").vectors, fast.encode(TEXTS, "document").vectors
    cosine = (wanted * found).sum(1) / np.linalg.norm(wanted, axis=1) / np.linalg.norm(found, axis=1)
    assert (cosine > 0.999).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "openvni"}, r"no backend 'openvni' \(did you mean openvino\?\)"),
        ({"backend": "openvino", "dtype": "float16"}, r"remove dtype \(--dtype float16\)"),
        ({"device": "cuda:99"}, r"device \(--device cuda:99\): torch sees"),
    ],
)
def test_impossible_options_give_a_one_line_error(options, message):
    with pytest.raises(UserError, match=message):
        minilm(**options)


def test_a_decoder_on_another_engine_gives_a_one_line_error(tmp_path):
    from support import tiny_models

    pytest.importorskip("openvino")
    folder = tiny_models.gpt_neox(tmp_path / "neox")
    card = ModelCard(name="tiny", loader="transformers", pooling="last", query=Side(max_tokens=48))
    options = Runtime(device="cpu", backend="openvino", model_paths=(("tiny", folder),))
    with pytest.raises(UserError, match="--backend torch"):
        open_encoder(card, ANY_DATASET, options).encode(["a"], "query")
