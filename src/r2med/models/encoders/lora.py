"""Merge a LoRA adapter into its base model: W + scale · B·A for every pair of factors; other weights are replaced.

This is done without peft. For one model, peft would also install accelerate, both follow their own releases of torch
and transformers, and peft only warns about weights that an adapter lacks. Both give the same bits (docs/evidence.md).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from r2med.foundation.core.errors import UserError, nearest

FACTOR_NAME = re.compile(r"(?P<module>.+)\.lora_(?P<embedding>embedding_)?(?P<letter>[AB])(\.default)?(\.weight)?")
WRAPPER_PARTS = re.compile(r"\.(modules_to_save|default|base_layer)(?=\.)")
"""Words that peft inserts into the names of weights that it wraps and saves whole."""
UNSUPPORTED_SETTINGS = ("use_dora", "lora_bias", "use_qalora", "layer_replication", "trainable_token_indices")
"""Settings that change the arithmetic in ways that are not supported here."""


def merge(model: Any, folder: Path, name: str, wrappers: Sequence[str] = ()) -> set[str]:
    """Merge the adapter of a folder into a model in place. Return the names of the weights that it replaced.

    `wrappers` are beginnings of names that the model does not have, because it was trained as a part of another.
    Raises UserError if the adapter has another kind or belongs to another base.
    """
    config, tensors = _read(folder, name)
    _check(config, folder, name)
    weights = dict(model.named_parameters())
    factors: dict[str, dict[str, torch.Tensor]] = {}
    whole: set[str] = set()
    with torch.no_grad():
        for saved, tensor in tensors.items():
            plain = _unwrapped(saved.removeprefix("base_model.model."), wrappers)
            if factor := FACTOR_NAME.fullmatch(plain):
                part = ("embedding_" if factor["embedding"] else "") + factor["letter"]
                factors.setdefault(factor["module"], {})[part] = tensor
            elif "original_module" not in plain:
                # These weights were trained whole: the head of a classifier, even if modules_to_save does not name it,
                # and biases.
                key = WRAPPER_PARTS.sub("", plain)
                _target(weights, key, tensor.shape, name).copy_(tensor)
                whole.add(key)
        if not factors:
            raise UserError(f"model {name}: the adapter in {folder} contains no LoRA weights")
        for module, parts in factors.items():
            change = _change(parts, module, config, name)
            weight = _target(weights, f"{module}.weight", change.shape, name)
            # The sum is in single precision. In half precision it would lose the result of the training.
            weight.copy_(weight.float() + change.to(weight.device))
    return whole


def _unwrapped(name: str, wrappers: Sequence[str]) -> str:
    for wrapper in wrappers:
        name = name.removeprefix(wrapper)
    return name


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
            f"model {name}: the base model has no weight {key}{nearest(key, weights)}; it may be the wrong base"
        )
    if weights[key].shape != shape:
        sizes = f"{tuple(weights[key].shape)} in the base, {tuple(shape)} in the adapter"
        raise UserError(f"model {name}: {key} has different sizes, {sizes}; it may be the wrong base")
    return weights[key]


def _read(folder: Path, name: str) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"model {name}: {folder / 'adapter_config.json'} cannot be read: {error}") from None
    if (file := folder / "adapter_model.safetensors").is_file():
        from safetensors.torch import load_file

        return config, load_file(file)
    # This is an old format that can contain code. torch reads only tensors from it and refuses anything else.
    return config, torch.load(folder / "adapter_model.bin", map_location="cpu", weights_only=True)


def _check(config: Mapping[str, Any], folder: Path, name: str) -> None:
    if str(config.get("peft_type", "LORA")).upper() != "LORA":
        raise UserError(f"model {name}: the adapter in {folder} is {config['peft_type']}; only LoRA can be merged")
    for setting in UNSUPPORTED_SETTINGS:
        if config.get(setting):
            raise UserError(f"model {name}: the adapter in {folder} has {setting}, which cannot be merged here")
