"""Loader `transformers`: any encoder or decoder of the library, with the pooling of its card."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import model_loading
from r2med.models.encoders.encoder import Encoded, Role, Vectors
from r2med.models.encoders.local_encoder import LocalModel
from r2med.models.encoders.model_cards import ModelCard, Side
from r2med.models.encoders.replicas import Replicas
from r2med.models.encoders.tokenize import TextTokenizer, padded
from r2med.models.encoders.weights import Weights

if TYPE_CHECKING:
    from r2med.models.encoders.forward import Forward


class Tower(LocalModel):
    """A tokenizer and the replicas of its model."""

    loaded_by = ("append_eos", "bidirectional", "part")

    @classmethod
    def check(cls, card: ModelCard, setup: Setup) -> None:
        """Raise UserError if the card does not say how tokens are pooled."""
        if card.pooling not in ("cls", "mean", "last"):
            raise UserError(f"model {card.name}: its card has no pooling; use cls, mean or last")

    @classmethod
    def key(cls, card: ModelCard, side: Side) -> dict[str, Any]:
        """Return what vectors depend on besides weights, prefix, lengths and precision."""
        fields = ("pooling", "pool_prompt", "bidirectional", "append_eos", *(("part",) if card.part else ()))
        return {**{name: getattr(card, name) for name in fields}, "pair_with_empty": side.pair_with_empty}

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        from transformers import AutoTokenizer

        from r2med.models.encoders.forward import Forward, load_model

        folder, adapter = weights.fetch_both()

        def load(device: str, dtype: str) -> Forward:
            forward = Forward(load_model(folder, adapter, card, dtype, device), device, card.bidirectional)
            if setup.backend == "torch":
                return forward
            from r2med.models.encoders.openvino_engine import compiled

            return compiled(forward, setup.backend)

        self._folder = folder
        with model_loading.loading(card.name, folder):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            self.tokenizer: TextTokenizer = TextTokenizer(tokenizer, card.append_eos)
            self.replicas = Replicas(setup, load, merged=adapter is not None)
        config = self.replicas.first.model.config
        self.limit = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.width = int(getattr(config, "hidden_size", 0) or 0)

    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Encoded:
        """Return one row per text. Raises UserError if the card allows more tokens than the weights have positions."""
        import torch

        from r2med.models.encoders.forward import pool

        side = card.side(role)
        if 0 < self.limit < side.max_tokens:
            raise UserError(
                f"model {card.name}: its card allows {side.max_tokens} tokens, the weights in {self._folder} "
                f"have {self.limit} positions"
            )
        tokens = self.tokenizer(texts, side, prefix)
        skip = 0 if card.pool_prompt else self.tokenizer.prefix_length(prefix)

        def rows(forward: Forward, batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = padded([tokens.types[i] for i in batch], 0) if tokens.types else None
            lengths = np.asarray([len(row) for row in ids], dtype=np.int64)
            with torch.inference_mode():
                hidden, sizes = forward(padded(ids, self.tokenizer.pad), lengths, types)
                pooled = pool(hidden, sizes, card.pooling, skip)
                if card.normalise:
                    pooled = torch.nn.functional.normalize(pooled, dim=1)
                vectors: Vectors = pooled.cpu().numpy()
                return vectors

        return self.replicas.run(tokens.lengths(), rows, tokens.cut)
