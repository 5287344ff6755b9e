"""Merge a LoRA adapter into its base model: W + scale · B·A for every pair of factors, other weights replaced.

Done here and not by peft: for one model it would bring itself and accelerate, which follow their own releases of torch
and transformers, and it only warns of weights that an adapter lacks. The two agree bit for bit (docs/rerank.md).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from r2med.core.errors import UserError, nearest

FACTOR = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<letter>[AB])(\.default)?(\.weight)?")
WRAPPED = re.compile(r"\.(modules_to_save|default|base_layer)(?=\.)")
"""What peft puts into the names of weights that it wraps and saves whole."""
OTHER_KINDS = ("use_dora", "lora_bias", "use_qalora", "layer_replication", "trainable_token_indices")
"""Settings that change the arithmetic in ways that are not done here."""


def merge(model: Any, folder: Path, name: str) -> set[str]:
    """Change a model's weights in place to those with the adapter of a folder; return which it brought whole.

    Raises UserError if the adapter is of another kind, or belongs to another base.
    """
    config, tensors = _read(folder, name)
    _check(config, folder, name)
    weights = dict(model.named_parameters())
    factors: dict[str, dict[str, torch.Tensor]] = {}
    whole: set[str] = set()
    with torch.no_grad():
        for saved, tensor in tensors.items():
            plain = saved.removeprefix("base_model.model.")
            if factor := FACTOR.fullmatch(plain):
                part = ("embedding_" if factor["embedding"] else "") + factor["letter"]
                factors.setdefault(factor["module"], {})[part] = tensor
            elif "original_module" not in plain:
                # Trained whole: the head of a classifier, whether modules_to_save names it or not, and biases.
                key = WRAPPED.sub("", plain)
                _target(weights, key, tensor.shape, name).copy_(tensor)
                whole.add(key)
        if not factors:
            raise UserError(f"model {name}: the adapter in {folder} holds no LoRA weights")
        for module, parts in factors.items():
            change = _change(parts, module, config, name)
            weight = _target(weights, f"{module}.weight", change.shape, name)
            # In single precision: in half, the sum would lose what training taught.
            weight.copy_(weight.float() + change.to(weight.device))
    return whole


def _change(parts: Mapping[str, torch.Tensor], module: str, config: Mapping[str, Any], name: str) -> torch.Tensor:
    embedding = "embedding_" if "embedding_A" in parts or "embedding_B" in parts else ""
    try:
        first, second = parts[f"{embedding}A"].float(), parts[f"{embedding}B"].float()
    except KeyError:
        raise UserError(f"model {name}: the adapter has only one of the two LoRA factors of {module}") from None
    if first.ndim != 2 or second.ndim != 2 or first.shape[0] != second.shape[1]:
        shapes = f"{tuple(first.shape)} and {tuple(second.shape)}"
        raise UserError(f"model {name}: the LoRA factors of {module} do not fit each other: {shapes}")
    change = (second @ first) * _scale(module, first.shape[0], config)
    return change.T if embedding or config.get("fan_in_fan_out") else change


def _scale(module: str, rank: int, config: Mapping[str, Any]) -> float:
    alpha = float(config.get("lora_alpha", 8))
    for pattern, value in (config.get("alpha_pattern") or {}).items():
        if re.fullmatch(rf"(.*\.)?({pattern})", module):
            alpha = float(value)
            break
    return alpha / math.sqrt(rank) if config.get("use_rslora") else alpha / rank


def _target(weights: Mapping[str, Any], key: str, shape: torch.Size, name: str) -> Any:
    if key not in weights:
        raise UserError(
            f"model {name}: the base model has no weight {key}{nearest(key, weights)}: is it the right base?"
        )
    if weights[key].shape != shape:
        sizes = f"{tuple(weights[key].shape)} in the base, {tuple(shape)} in the adapter"
        raise UserError(f"model {name}: {key} has different sizes, {sizes}: is it the right base?")
    return weights[key]


def _read(folder: Path, name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"model {name}: {folder / 'adapter_config.json'} cannot be read: {error}") from None
    if (file := folder / "adapter_model.safetensors").is_file():
        from safetensors.torch import load_file

        return config, load_file(file)
    # An old format that can hold code; torch reads tensors from it and refuses anything else.
    return config, torch.load(folder / "adapter_model.bin", map_location="cpu", weights_only=True)


def _check(config: Mapping[str, Any], folder: Path, name: str) -> None:
    if str(config.get("peft_type", "LORA")).upper() != "LORA":
        raise UserError(f"model {name}: the adapter in {folder} is {config['peft_type']}, only LoRA can be merged")
    for setting in OTHER_KINDS:
        if config.get(setting):
            raise UserError(f"model {name}: the adapter in {folder} has {setting}, which cannot be merged here")
