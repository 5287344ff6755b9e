"""Loaders are imported when they are used, and say what to install."""

import subprocess
import sys

import pytest

from r2med.encoders.model_cards import ANY_DATASET, model_card
from r2med.encoders.open import LOADERS, card_of, open_encoder
from r2med.errors import MissingExtraError, UserError
from r2med.setup import Setup


def test_cards_and_specs_are_read_without_torch():
    code = "import sys, r2med.encoders.open; r2med.encoders.open.card_of('bge'); print('torch' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "False"


@pytest.mark.parametrize("name", ["minilm", "inst-l", "nv"])
def test_without_torch_one_line_says_what_to_install(name, monkeypatch):
    for module in [known for known in sys.modules if known.startswith("r2med.encoders.")]:
        if module.split(".")[2] not in ("cards", "open", "options", "contracts", "specs", "weights"):
            monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'r2med\[dense\]'"):
        open_encoder(model_card(name), ANY_DATASET, Setup())


def test_every_loader_of_a_card_is_known():
    from r2med.encoders.model_cards import ModelCard

    assert set(ModelCard.model_fields["loader"].annotation.__args__) == set(LOADERS)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bgee", r"no model 'bgee' \(did you mean bge\?\)"),
        ("medcpt:publishd", r"did you mean medcpt:published\?"),
        ("py:module_only", "py:MODULE:NAME"),
    ],
)
def test_a_name_that_is_none_is_one_line(spec, message):
    with pytest.raises(UserError, match=message):
        card_of(spec)


def test_another_engine_is_not_ignored_by_models_that_cannot_use_it():
    with pytest.raises(UserError, match=r"inst-l \(sentence-transformers\) runs on torch only"):
        open_encoder(model_card("inst-l"), ANY_DATASET, Setup(backend="openvino"))
