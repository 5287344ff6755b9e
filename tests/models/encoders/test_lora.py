"""LoRA adapters: W + scale · B·A equals the written-out sum, and every fault gives a one-line error."""

import json
import math

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.crossencoders.pair_model import load_model
from r2med.models.crossencoders.pair_scorer import TransformerScorer
from r2med.models.crossencoders.reranker_cards import RerankerCard
from r2med.models.encoders.lora import merge
from support import tiny_rerankers
from support.tiny_rerankers import PAIRS


class Net(torch.nn.Module):
    """A layer, a layer with a transposed weight, an embedding and a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.layer = torch.nn.Linear(5, 3)
        self.words = torch.nn.Embedding(7, 4)
        self.score = torch.nn.Linear(3, 1, bias=False)
        self.turned = torch.nn.Linear(2, 6, bias=False)  # its weight is 6 × 2: as Conv1D's, inputs first


def adapter(folder, tensors, **config):
    folder.mkdir()
    save_file(
        {f"base_model.model.{name}": value for name, value in tensors.items()}, folder / "adapter_model.safetensors"
    )
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 6, **config}))
    return folder


def summed(weight, first, second, scale):
    """Return W + scale · B·A, element by element in double precision."""
    w, a, b = (np.asarray(x.detach(), dtype=np.float64) for x in (weight, first, second))
    out = w.copy()
    for row in range(w.shape[0]):
        for col in range(w.shape[1]):
            out[row, col] += scale * sum(b[row, k] * a[k, col] for k in range(a.shape[0]))
    return out


def factors(rows=3, columns=5, rank=2):
    torch.manual_seed(2)
    return torch.randn(rank, columns), torch.randn(rows, rank)


@pytest.mark.parametrize(
    ("config", "scale"),
    [
        ({}, 3.0),
        ({"use_rslora": True}, 6 / math.sqrt(2)),
        ({"alpha_pattern": {"layer": 10}}, 5.0),
        ({"alpha_pattern": {"other": 10}}, 3.0),
    ],
)
def test_a_layer_gets_the_product_of_its_factors(tmp_path, config, scale):
    net, (first, second) = Net(), factors()
    wanted = summed(net.layer.weight, first, second, scale)
    others = [net.layer.bias.clone(), net.words.weight.clone(), net.score.weight.clone()]
    merge(net, adapter(tmp_path / "a", {"layer.lora_A.weight": first, "layer.lora_B.weight": second}, **config), "tiny")
    np.testing.assert_allclose(net.layer.weight.detach(), wanted, rtol=1e-5, atol=1e-6)
    for found, before in zip([net.layer.bias, net.words.weight, net.score.weight], others, strict=True):
        assert torch.equal(found, before)


def test_each_layer_has_the_rank_of_its_own_factors(tmp_path):
    net, (first, second) = Net(), factors(rank=3)
    wanted = summed(net.layer.weight, first, second, 6 / 3)
    tensors = {"layer.lora_A.weight": first, "layer.lora_B.weight": second}
    merge(net, adapter(tmp_path / "a", tensors, rank_pattern={"layer": 3}), "tiny")
    np.testing.assert_allclose(net.layer.weight.detach(), wanted, rtol=1e-5, atol=1e-6)


def test_transposed_weights(tmp_path):
    net, (first, second) = Net(), factors(rows=2, columns=6)
    wanted = summed(net.turned.weight.T, first, second, 3.0).T
    tensors = {"turned.lora_A.weight": first, "turned.lora_B.weight": second}
    merge(net, adapter(tmp_path / "a", tensors, fan_in_fan_out=True), "tiny")
    np.testing.assert_allclose(net.turned.weight.detach(), wanted, rtol=1e-5, atol=1e-6)


def test_an_embedding(tmp_path):
    net, (first, second) = Net(), factors(rows=4, columns=7)
    more = torch.randn(7, 4)  # saved beside the factors, since new tokens may have been added
    wanted = summed(more.T, first, second, 3.0).T
    tensors = {"words.lora_embedding_A": first, "words.lora_embedding_B": second, "words.base_layer.weight": more}
    merge(net, adapter(tmp_path / "a", tensors), "tiny")
    np.testing.assert_allclose(net.words.weight.detach(), wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "name", ["score.weight", "score.modules_to_save.weight", "score.modules_to_save.default.weight"]
)
def test_a_head_that_was_trained_whole_replaces_the_head_of_the_model(tmp_path, name):
    net, (first, second), head = Net(), factors(), torch.randn(1, 3)
    tensors = {"layer.lora_A.default.weight": first, "layer.lora_B.default.weight": second, name: head}
    tensors["score.original_module.weight"] = torch.zeros(1, 3)
    assert merge(net, adapter(tmp_path / "a", tensors), "tiny") == {"score.weight"}
    assert torch.equal(net.score.weight, head)


def test_sums_are_computed_in_single_precision(tmp_path):
    net, (first, second) = Net().to(torch.bfloat16), factors()
    wanted = torch.from_numpy(summed(net.layer.weight.float(), first, second, 3.0)).to(torch.bfloat16)
    merge(net, adapter(tmp_path / "a", {"layer.lora_A.weight": first, "layer.lora_B.weight": second}), "tiny")
    assert torch.equal(net.layer.weight, wanted)


@pytest.mark.parametrize(
    ("change", "config", "message"),
    [
        ({"layer.lora_B.weight": None}, {}, "only one of the two LoRA factors of layer"),
        ({"layer.lora_B.weight": torch.ones(3, 4)}, {}, r"do not fit each other: \(2, 5\) and \(3, 4\)"),
        ({"layer.lora_B.weight": torch.ones(9, 2)}, {}, r"layer.weight has different sizes, \(3, 5\) in the base"),
        (
            {"player.lora_A.weight": torch.ones(2, 5), "player.lora_B.weight": torch.ones(3, 2)},
            {},
            "did you mean layer",
        ),
        ({"layer.lora_A.weight": None, "layer.lora_B.weight": None}, {}, "contains no LoRA weights"),
        ({}, {"peft_type": "IA3"}, "is IA3; only LoRA can be merged"),
        ({}, {"use_dora": True}, "has use_dora, which cannot be merged here"),
    ],
)
def test_an_adapter_that_cannot_be_merged_gives_a_one_line_error(tmp_path, change, config, message):
    first, second = factors()
    tensors = {"layer.lora_A.weight": first, "layer.lora_B.weight": second, "score.weight": torch.ones(1, 3), **change}
    tensors = {name: value for name, value in tensors.items() if value is not None}
    with pytest.raises(UserError, match=message):
        merge(Net(), adapter(tmp_path / "a", tensors, **config), "tiny")


CARD = RerankerCard(
    name="tiny",
    loader="classifier",
    repository="org/adapter",
    base="org/base",
    query="query: {query}",
    document="document: {document}",
    join="bos",
    logit="only",
    max_tokens=96,
)


def scored(**paths):
    options = Runtime(
        device="cpu", model_paths=tuple((name.replace("_", "."), folder) for name, folder in paths.items())
    )
    scorer = TransformerScorer(CARD, ANY_DATASET, options)
    return [found.score for found in scorer.score(PAIRS)], scorer.key()


def test_the_old_format_of_adapters_and_merged_weights_score_alike(tmp_path):
    base = tiny_rerankers.llama(tmp_path / "base")
    wanted, key = scored(tiny=tiny_rerankers.lora(tmp_path / "new", base), tiny_base=base)
    assert (key["model"], key["base"]) == ("org/adapter", "org/base")
    assert key["revision"] != key["base_revision"]
    old = tiny_rerankers.lora(tmp_path / "old", base, "bin")
    assert scored(tiny=old, tiny_base=base)[0] == wanted

    model = transformers.AutoModelForSequenceClassification.from_pretrained(base, num_labels=1)
    merge(model, tmp_path / "new", "tiny")
    model.save_pretrained(tmp_path / "merged")
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "merged")
    found, key = scored(tiny=tmp_path / "merged")
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert "base" not in key


def test_an_adapter_is_merged_before_the_weights_are_rounded(tmp_path):
    base = tiny_rerankers.llama(tmp_path / "base")
    adapter_folder = tiny_rerankers.lora(tmp_path / "adapter", base)
    loaded = {
        dtype: dict(load_model(base, adapter_folder, CARD, Setup(), dtype).named_parameters())
        for dtype in ("float32", "bfloat16")
    }
    for name, exact in loaded["float32"].items():
        assert torch.equal(loaded["bfloat16"][name], exact.to(torch.bfloat16)), name


def test_an_adapter_without_its_head_gives_a_one_line_error(tmp_path):
    base = tiny_rerankers.llama(tmp_path / "base")
    folder = tiny_rerankers.lora(tmp_path / "lora", base)
    tensors = load_file(folder / "adapter_model.safetensors")
    del tensors["base_model.model.score.weight"]
    save_file(tensors, folder / "adapter_model.safetensors")
    with pytest.raises(UserError, match=r"lora lacks 1 weights of LlamaForSequenceClassification, e.g. score.weight"):
        scored(tiny=folder, tiny_base=base)


def test_the_error_names_the_adapter_or_the_base_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    base = tiny_rerankers.llama(tmp_path / "base")
    folder = tiny_rerankers.lora(tmp_path / "lora", base)
    with pytest.raises(UserError, match=r"cannot get org/base .*model_paths \(--model-path tiny.base=DIR\)"):
        scored(tiny=folder)
    with pytest.raises(UserError, match=r"cannot get org/adapter .*model_paths \(--model-path tiny=DIR\)"):
        scored(tiny_base=base)
    (folder / "adapter_model.safetensors").unlink()
    with pytest.raises(UserError, match=r"has no adapter_model.safetensors"):
        scored(tiny=folder, tiny_base=base)


def test_adapter_and_base_are_found_in_the_users_model_folder(tmp_path, monkeypatch):
    base = tiny_rerankers.llama(tmp_path / "models" / "tiny.base")
    tiny_rerankers.lora(tmp_path / "models" / "tiny", base)
    monkeypatch.setenv("R2MED_MODELS", str(tmp_path / "models"))
    assert len(scored()[0]) == len(PAIRS)
