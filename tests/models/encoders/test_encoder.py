"""Loaders are imported when they are used, and their errors say what to install."""

import subprocess
import sys

import pytest
from pydantic import ValidationError

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import MissingExtraError, UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.embedding_apis import EMBEDDING_APIS
from r2med.models.encoders.encoder import LOADERS, open_encoder
from r2med.models.encoders.model_cards import MODELS, PROCESS_LOADERS, ModelCard, resolve_card


def test_cards_and_specs_are_read_without_torch():
    code = "import sys; from r2med.models.encoders.model_cards import resolve_card; resolve_card('bge')"
    code += "; print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


@pytest.mark.parametrize("device", ["auto", "cpu"])
@pytest.mark.parametrize("name", ["minilm", "inst-l", "nv"])
def test_without_torch_one_line_says_what_to_install(name, device, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install -e '\.\[models\]'"):
        open_encoder(MODELS.card(name), ANY_DATASET, Runtime(device=device, trust_remote_code=True))


def test_every_loader_of_a_card_is_known():
    assert {*PROCESS_LOADERS} == {*LOADERS}
    assert not set(LOADERS) & set(EMBEDDING_APIS)
    with pytest.raises(ValidationError, match=r"'opnai' \(did you mean openai\?\) is no loader: transformers, "):
        ModelCard(name="x", loader="opnai")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bgee", r"no model 'bgee' \(did you mean bge\?\)"),
        ("medcpt:publishd", r"did you mean medcpt:published\?"),
        ("py:module_only", "py:MODULE:NAME"),
    ],
)
def test_an_unknown_name_gives_a_one_line_error(spec, message):
    with pytest.raises(UserError, match=message):
        resolve_card(spec)


def test_models_that_cannot_use_another_engine_refuse_it():
    with pytest.raises(UserError, match=r"nv \(remote-code\) runs only on torch"):
        open_encoder(MODELS["nv"], ANY_DATASET, Runtime(backend="openvino", trust_remote_code=True))


def test_a_card_of_a_transformer_without_pooling_is_one_line():
    with pytest.raises(UserError, match="model x: its card has no pooling; use cls, mean or last"):
        open_encoder(ModelCard(name="x", loader="transformers"), ANY_DATASET, Runtime(device="cpu"))
