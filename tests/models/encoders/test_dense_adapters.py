"""Dense models that are a LoRA adapter on a base, or one part of a larger model, as those of ClinicTron."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from r2med.data.dataset_cards import ANY_DATASET
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import Encoder, open_encoder
from r2med.models.encoders.model_cards import MODELS, ModelCard, Side
from r2med.models.encoders.transformer import load_model
from support import tiny_models
from support.tiny_models import TEXTS

LAYER = "layers.0.self_attn.q_proj"


def card(**settings: Any) -> ModelCard:
    where = {"name": "tiny", "repository": "org/adapter", "base": "org/base"}
    sides = {"query": Side(max_tokens=48), "document": Side(max_tokens=48)}
    return ModelCard(**{**where, **sides, "loader": "transformers", "pooling": "last", **settings})


def adapter(folder: Path, base: Path, before: str = "") -> tuple[Path, torch.Tensor]:
    """Write an adapter of one layer. Return its folder and what it adds to the weight of that layer."""
    folder.mkdir()
    weight = transformers.AutoModel.from_pretrained(base).get_parameter(f"{LAYER}.weight")
    torch.manual_seed(3)
    first, second = torch.randn(2, weight.shape[1]), torch.randn(weight.shape[0], 2)
    names = {"lora_A": first, "lora_B": second}
    tensors = {f"base_model.model.{before}{LAYER}.{name}.weight": value for name, value in names.items()}
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", "r": 2, "lora_alpha": 4}))
    return folder, 2.0 * second @ first


def encoder(model: ModelCard, **folders: Path) -> Encoder:
    paths = tuple((name.replace("_", "."), folder) for name, folder in folders.items())
    return open_encoder(model, ANY_DATASET, Runtime(device="cpu", model_paths=paths))


@pytest.mark.parametrize("before", ["", "model."])
def test_vectors_are_those_of_the_merged_weights(before: str, tmp_path: Path) -> None:
    base = tiny_models.qwen3(tmp_path / "base")
    folder, change = adapter(tmp_path / "adapter", base, before)
    model = transformers.AutoModel.from_pretrained(base)
    with torch.no_grad():
        model.get_parameter(f"{LAYER}.weight").add_(change)
    model.save_pretrained(tmp_path / "merged")
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(tmp_path / "merged")
    adapted, merged = encoder(card(), tiny=folder, tiny_base=base), encoder(card(), tiny=tmp_path / "merged")
    found, wanted = (each.encode(TEXTS, "document").vectors for each in (adapted, merged))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    plain = encoder(card(base=""), tiny=base).encode(TEXTS, "document").vectors
    assert np.abs(found - plain).max() > 0.01
    key = adapted.key("document")
    assert (key["model"], key["base"]) == ("org/adapter", "org/base")
    assert key["revision"] != key["base_revision"]
    assert "base" not in merged.key("document")


def test_an_adapter_is_merged_before_the_weights_are_rounded(tmp_path: Path) -> None:
    base = tiny_models.qwen3(tmp_path / "base")
    folder, _ = adapter(tmp_path / "adapter", base)
    exact, rounded = (load_model(base, folder, card(), dtype, "cpu") for dtype in ("float32", "bfloat16"))
    for name, weight in exact.named_parameters():
        assert torch.equal(rounded.get_parameter(name), weight.to(torch.bfloat16)), name


def test_one_part_of_a_model_encodes_without_the_code_of_its_repository(tmp_path: Path) -> None:
    inner = tiny_models.mistral(tmp_path / "inner")
    folder, _ = adapter(tmp_path / "adapter", inner, "embedding_model.")
    whole = tmp_path / "whole"
    transformers.AutoTokenizer.from_pretrained(inner).save_pretrained(whole)
    weights = {f"embedding_model.{name}": value for name, value in load_file(inner / "model.safetensors").items()}
    head = {"latent_attention_model.latents": torch.zeros(2, 2)}
    save_file({**weights, **head}, whole / "model.safetensors", {"format": "pt"})
    described = json.loads((inner / "config.json").read_text()) | {"model_type": "bidir_mistral"}
    auto = {"AutoModel": "modeling.Never"}
    (whole / "config.json").write_text(json.dumps({"model_type": "other", "auto_map": auto, "text_config": described}))
    settings = {"pooling": "mean", "bidirectional": True, "architecture": "mistral"}
    found = encoder(card(part="embedding_model", **settings), tiny=folder, tiny_base=whole)
    wanted = encoder(card(**settings), tiny=_bare(folder, tmp_path / "bare"), tiny_base=inner)
    np.testing.assert_allclose(
        found.encode(TEXTS, "document").vectors, wanted.encode(TEXTS, "document").vectors, rtol=1e-5, atol=1e-6
    )
    assert found.key("document")["part"] == "embedding_model"


def _bare(folder: Path, new: Path) -> Path:
    """Copy an adapter whose names lack the part."""
    new.mkdir()
    tensors = load_file(folder / "adapter_model.safetensors")
    save_file(
        {name.replace("embedding_model.", ""): value for name, value in tensors.items()},
        new / "adapter_model.safetensors",
    )
    (new / "adapter_config.json").write_bytes((folder / "adapter_config.json").read_bytes())
    return new


def test_a_base_needs_the_loader_that_merges_it() -> None:
    for field in ("base", "part"):
        with pytest.raises(ValueError, match=f"{field} has no meaning with the loader sentence-transformers"):
            ModelCard(name="x", loader="sentence-transformers", **{field: "org/base"})


def test_a_missing_base_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    folder, _ = adapter(tmp_path / "adapter", tiny_models.qwen3(tmp_path / "base"))
    with pytest.raises(UserError, match=r"org/base.*tiny\.base"):
        encoder(card(), tiny=folder).encode(TEXTS, "document")


def test_the_cards_of_clinictron_name_a_base_at_a_commit() -> None:
    found = [each for name, each in MODELS.items() if name.startswith("clinictron-")]
    assert len(found) == 3
    assert all(len(each.base_revision) == 40 and each.base for each in found)
