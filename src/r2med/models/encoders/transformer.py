"""Loader `transformers`: any encoder or decoder of the library, with the pooling of its card."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import model_loading
from r2med.models.encoders.devices import dtype_setting
from r2med.models.encoders.encoder import Role, Vectors
from r2med.models.encoders.local_encoder import LocalModel
from r2med.models.encoders.lora import merge
from r2med.models.encoders.model_cards import ModelCard
from r2med.models.encoders.replicas import Replicas, Rows
from r2med.models.encoders.tokenize import TextTokenizer, Tokens, padded
from r2med.models.encoders.weights import Weights

Matrix = npt.NDArray[np.int64]


class Tower(LocalModel):
    """A tokenizer and the replicas of its model."""

    tokenizer: TextTokenizer

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        from transformers import AutoTokenizer

        folder, adapter = weights.fetch_both()

        def load(device: str, dtype: str) -> Forward:
            forward = Forward(load_model(folder, adapter, card, dtype, device), device, card.bidirectional)
            if setup.backend == "torch":
                return forward
            from r2med.models.encoders.openvino_engine import compiled

            on_engine: Forward = compiled(forward, setup.backend)
            return on_engine

        with model_loading.loading(card.name, folder):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            self.tokenizer = TextTokenizer(tokenizer, card.append_eos)
            self.replicas = Replicas(setup, load, merged=adapter is not None)
        config = self.replicas.first.model.config
        self.limit = self.positions = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.width = int(getattr(config, "hidden_size", 0) or 0)

    def rows(self, texts: Sequence[str], tokens: Tokens, card: ModelCard, role: Role, prefix: str) -> Rows[Forward]:
        """Return the function that encodes a batch: it runs a copy of the model and pools its hidden states."""
        skip = 0 if card.pool_prompt else self.tokenizer.prefix_length(prefix)

        def rows(forward: Forward, batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = padded([tokens.types[i] for i in batch], 0) if tokens.types else None
            lengths = np.asarray([len(row) for row in ids], dtype=np.int64)
            with torch.inference_mode():
                inputs = forward.inputs(padded(ids, self.tokenizer.pad), lengths, types)
                pooled = pool(forward.model(**inputs).last_hidden_state, lengths, card.pooling, skip)
                if card.normalise:
                    pooled = torch.nn.functional.normalize(pooled, dim=1)
                vectors: Vectors = pooled.cpu().numpy()
                return vectors

        return rows


class Forward:
    """A transformer on one device, and the inputs that its forward pass needs: `model(**inputs(…))`."""

    def __init__(self, model: Any, device: str, bidirectional: bool) -> None:
        self.model = model
        self.device = device
        self.bidirectional = bidirectional
        self._settings: dict[str, Any] = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
        self.needs_mask = True
        try:
            looks_ahead = self._looks_ahead()
        except TypeError as error:
            if "use_cache" not in str(error):
                raise
            self._settings = {}  # its configuration has it, its code does not
            looks_ahead = self._looks_ahead()
        if bidirectional and not looks_ahead:
            raise UserError(f"{type(model).__name__} does not attend in both directions with this transformers release")
        # In a causal model, a text does not see the tokens on its right. Without a mask, torch uses its fused causal
        # kernel, which is twice as fast and needs no memory for the mask.
        self.needs_mask = looks_ahead

    def inputs(self, ids: Matrix, lengths: Matrix, types: Matrix | None = None) -> dict[str, Any]:
        """Return the arguments of the model for right-padded ids, on its device, with the mask that it needs."""
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(self.device), **self._settings}
        if types is not None:
            inputs["token_type_ids"] = torch.from_numpy(types).to(self.device)
        if not self.bidirectional and (not self.needs_mask or int(lengths.min()) == ids.shape[1]):
            return inputs
        is_text = torch.arange(ids.shape[1], device=self.device) < torch.from_numpy(lengths).to(self.device)[:, None]
        inputs["attention_mask"] = self._both_ways(is_text) if self.bidirectional else is_text.long()
        return inputs

    def _both_ways(self, is_text: Any) -> Any:
        # A mask with four dimensions replaces the model's own causal mask. It is added to the scores. It is broadcast,
        # so it needs the memory of only one row per text.
        dtype = next(self.model.parameters()).dtype
        row = torch.zeros(is_text.shape, dtype=dtype, device=self.device)
        row.masked_fill_(~is_text, torch.finfo(dtype).min)
        return row[:, None, None, :].expand(-1, 1, is_text.shape[1], is_text.shape[1])

    def _looks_ahead(self) -> bool:
        """Return True if a later token changes the state of an earlier one.

        This is tested, because flags differ between releases.
        """
        ids = np.asarray([[5, 6, 7, 8], [5, 6, 7, 9]], dtype=np.int64)
        with torch.inference_mode():
            hidden = self.model(**self.inputs(ids, np.asarray([4, 4], dtype=np.int64))).last_hidden_state
        return not torch.equal(hidden[0, 0], hidden[1, 0])


def load_model(folder: Path, adapter: Path | None, card: ModelCard, dtype: str, device: str) -> Any:
    """Return the transformer of a folder on a device, without heads, with the adapter merged, ready to encode.

    Raises UserError if the folder lacks weights of its architecture.
    """
    import transformers

    name = card.name
    # An adapter is merged before the weights are rounded to bfloat16, which would lose most of its changes.
    wide = "float32" if adapter is not None and dtype == "bfloat16" else dtype
    settings: dict[str, Any] = {
        **dtype_setting(wide),
        **(_part(folder, card) if card.part else {}),
        "attn_implementation": "sdpa",
        "local_files_only": True,
        "output_loading_info": True,
    }
    try:
        model, info = transformers.AutoModel.from_pretrained(str(folder), **settings)
    except ValueError as error:
        if "scaled_dot_product" not in str(error):
            raise
        del settings["attn_implementation"]  # The architecture does not support torch's fused kernels.
        model, info = transformers.AutoModel.from_pretrained(str(folder), **settings)
    missing = [key for key in info["missing_keys"] if "pooler." not in key]
    if missing:  # The library would fill them with random numbers.
        raise UserError(f"model {name}: {folder} lacks {len(missing)} weights of its architecture, e.g. {missing[0]}")
    if hasattr(model, "pooler"):
        model.pooler = None
    if adapter is not None:
        with model_loading.loading(name, adapter):
            merge(model, adapter, name, (f"{card.part}.", "model."))
    return (model if wide == dtype else model.to(getattr(torch, dtype))).eval().to(device)


def _part(folder: Path, card: ModelCard) -> dict[str, Any]:
    """Return what loads one part of a model: its configuration, and the names of its weights without the prefix."""
    from transformers import AutoConfig

    described = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("text_config")
    if not isinstance(described, dict):
        raise UserError(f"model {card.name}: {folder / 'config.json'} has no text_config for its part {card.part}")
    own = {key: value for key, value in described.items() if key not in ("model_type", "architectures", "auto_map")}
    return {
        "config": AutoConfig.for_model(card.architecture, **own),
        "key_mapping": {rf"^{re.escape(card.part)}\.": ""},
    }


def pool(hidden: Any, lengths: Matrix, how: str, skip: int = 0) -> Any:
    """Return float32 rows from right-padded hidden states (texts × tokens × width).

    `lengths` are the numbers of tokens of the texts. `skip` is the number of prefix tokens, which mean pooling leaves
    out. If a text has no other tokens, the prefix itself is pooled. Such a vector means little, but it is finite.
    """
    if how == "cls":
        return hidden[:, 0].float()
    sizes = torch.from_numpy(lengths).to(hidden.device)
    if how == "last":
        rows = torch.arange(hidden.shape[0], device=hidden.device)
        return hidden[rows, sizes - 1].float()
    if how != "mean":
        raise ValueError(f"no pooling {how!r}")
    index = torch.arange(hidden.shape[1], device=hidden.device)[None, :]
    first = torch.where(sizes > skip, torch.full_like(sizes, skip), torch.zeros_like(sizes))
    mask = (index >= first[:, None]) & (index < sizes[:, None])
    # The sum is in float32, because in half precision long texts would lose the last bits of every entry.
    total = torch.einsum("ntw,nt->nw", hidden.float(), mask.float())
    return total / mask.sum(dim=1, keepdim=True)
