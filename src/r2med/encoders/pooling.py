"""From one vector per token to one per text, whatever the padding."""

from __future__ import annotations

from typing import Any

import torch


def pool(hidden: Any, lengths: Any, how: str, skip: int = 0) -> Any:
    """Return float32 rows from right-padded hidden states (texts × tokens × width).

    `lengths` are the tokens of each text; `skip` the prefix's, which mean pooling leaves out. A text that has
    nothing besides its prefix is pooled over the prefix: a vector that means little, but a finite one.
    """
    if how == "cls":
        return hidden[:, 0].float()
    if how == "last":
        rows = torch.arange(hidden.shape[0], device=hidden.device)
        return hidden[rows, lengths - 1].float()
    if how != "mean":
        raise ValueError(f"no pooling {how!r}")
    places = torch.arange(hidden.shape[1], device=hidden.device)[None, :]
    first = torch.where(lengths > skip, torch.full_like(lengths, skip), torch.zeros_like(lengths))
    mask = (places >= first[:, None]) & (places < lengths[:, None])
    # Summed in float32: in half precision, long texts would lose the last bits of every entry.
    total = torch.einsum("ntw,nt->nw", hidden.float(), mask.float())
    return total / mask.sum(dim=1, keepdim=True)
