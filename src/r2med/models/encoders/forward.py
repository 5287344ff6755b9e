"""Run one copy of a transformer on one device and pool its hidden states to one vector per text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from r2med.foundation.core.errors import UserError
from r2med.models.encoders import model_loading
from r2med.models.encoders.devices import dtype_setting
from r2med.models.encoders.lora import merge
from r2med.models.encoders.model_cards import ModelCard

Matrix = npt.NDArray[np.int64]


class Forward:
    """Forward pass of a torch model, with the attention mask that it needs."""

    def __init__(self, model: Any, device: str, bidirectional: bool) -> None:
        self.model = model
        self.device = device
        self.bidirectional = bidirectional
        self._settings: dict[str, Any] = {"use_cache": False} if hasattr(model.config, "use_cache") else {}
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

    def __call__(self, ids: Matrix, lengths: Matrix, types: Matrix | None = None) -> tuple[Any, Any]:
        """Return the hidden states (texts × tokens × width) of right-padded ids, and the lengths, on the device."""
        sizes = torch.from_numpy(lengths).to(self.device)
        inputs: dict[str, Any] = {"input_ids": torch.from_numpy(ids).to(self.device)}
        if types is not None:
            inputs["token_type_ids"] = torch.from_numpy(types).to(self.device)
        if self.bidirectional:
            inputs["attention_mask"] = self._both_ways(sizes, ids.shape[1])
        elif self.needs_mask and int(lengths.min()) < ids.shape[1]:
            inputs["attention_mask"] = (torch.arange(ids.shape[1], device=self.device) < sizes[:, None]).long()
        return self.model(**inputs, **self._settings).last_hidden_state, sizes

    def _both_ways(self, sizes: Any, width: int) -> Any:
        # A mask with four dimensions replaces the model's own causal mask. It is added to the scores. It is broadcast,
        # so it needs the memory of only one row per text.
        dtype = next(self.model.parameters()).dtype
        hidden = torch.arange(width, device=self.device) >= sizes[:, None]
        row = torch.zeros(hidden.shape, dtype=dtype, device=self.device).masked_fill_(hidden, torch.finfo(dtype).min)
        return row[:, None, None, :].expand(-1, 1, width, width)

    def _looks_ahead(self) -> bool:
        """Return True if a later token changes the state of an earlier one.

        This is tested, because flags differ between releases.
        """
        ids = np.asarray([[5, 6, 7, 8], [5, 6, 7, 9]], dtype=np.int64)
        with torch.inference_mode():
            if self.bidirectional:
                hidden, _ = self(ids, np.asarray([4, 4], dtype=np.int64))
            else:
                inputs = torch.from_numpy(ids).to(self.device)
                hidden = self.model(input_ids=inputs, **self._settings).last_hidden_state
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


def pool(hidden: Any, lengths: Any, how: str, skip: int = 0) -> Any:
    """Return float32 rows from right-padded hidden states (texts × tokens × width).

    `lengths` are the numbers of tokens of the texts. `skip` is the number of prefix tokens, which mean pooling leaves
    out. If a text has no other tokens, the prefix itself is pooled. Such a vector means little, but it is finite.
    """
    if how == "cls":
        return hidden[:, 0].float()
    if how == "last":
        rows = torch.arange(hidden.shape[0], device=hidden.device)
        return hidden[rows, lengths - 1].float()
    if how != "mean":
        raise ValueError(f"no pooling {how!r}")
    index = torch.arange(hidden.shape[1], device=hidden.device)[None, :]
    first = torch.where(lengths > skip, torch.full_like(lengths, skip), torch.zeros_like(lengths))
    mask = (index >= first[:, None]) & (index < lengths[:, None])
    # The sum is in float32, because in half precision long texts would lose the last bits of every entry.
    total = torch.einsum("ntw,nt->nw", hidden.float(), mask.float())
    return total / mask.sum(dim=1, keepdim=True)
