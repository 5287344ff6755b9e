"""The loader `transformers`: any encoder or decoder of the library, pooled as its card says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.encoders import devices, weights
from r2med.encoders.encoder import Encoded, Role, Vectors, timed
from r2med.encoders.model_cards import ModelCard, Side
from r2med.encoders.replicas import Replicas, cached_model
from r2med.encoders.tokenize import TextTokenizer, Tokens, padded
from r2med.errors import UserError
from r2med.setup import Setup

if TYPE_CHECKING:
    from r2med.encoders.forward import Forward


class Tower:
    """A tokenizer and the replicas of its model."""

    def __init__(self, folder: Path, card: ModelCard, setup: Setup) -> None:
        from transformers import AutoTokenizer

        from r2med.encoders.engines import compiled
        from r2med.encoders.forward import Forward, load_model

        def load(device: str, dtype: str) -> Forward:
            model = load_model(folder, dtype, device, card.name)
            return compiled(Forward(model, device, card.bidirectional), setup.backend)

        self.folder = folder
        with weights.loading(card.name, folder):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            self.tokenizer = TextTokenizer(tokenizer, card.append_eos)
            self.replicas = Replicas(setup, load)
        config = self.replicas.first.model.config
        self.limit = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.width = int(getattr(config, "hidden_size", 0) or 0)

    def encode(self, tokens: Tokens, card: ModelCard, skip: int) -> Encoded:
        """Return one row per text; `skip` tokens at the beginning take no part in a mean."""
        from r2med.encoders.forward import embed

        def rows(forward: Forward, batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = padded([tokens.types[i] for i in batch], 0) if tokens.types else None
            lengths = np.asarray([len(row) for row in ids], dtype=np.int64)
            return embed(forward, padded(ids, self.tokenizer.pad), lengths, types, card.pooling, skip, card.normalise)

        return self.replicas.run(tokens.lengths(), rows, tokens.cut)


class TransformerEncoder:
    """Encodes by a card; weights are loaded with the first text, so that stored vectors need none."""

    def __init__(self, card: ModelCard, instruction: Instruction, setup: Setup, store: object = None) -> None:
        if card.pooling not in ("cls", "mean", "last"):
            raise UserError(f"model {card.name}: its card has no pooling: cls, mean or last")
        self._card = card
        self._instruction = instruction
        self._setup = setup
        self._backend = devices.describe_backend(setup)
        self._weights: dict[str, weights.Weights] = {}

    def describe(self, role: Role) -> dict[str, Any]:
        """Return what the vectors of a role depend on; the card's name and similarity are no part of it."""
        card, side = self._card, self._card.side(role)
        tower = self._find(side)
        return {
            "loader": card.loader,
            "model": tower.repository or card.name,
            "revision": tower.revision,
            "prefix": side.prefix_for(self._instruction),
            "max_tokens": side.max_tokens,
            "pair_with_empty": side.pair_with_empty,
            "pooling": card.pooling,
            "pool_prompt": card.pool_prompt,
            "bidirectional": card.bidirectional,
            "append_eos": card.append_eos,
            "normalise": card.normalise,
            **self._backend,
        }

    @timed
    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one row per text, in their order, and what they took."""
        side = self._card.side(role)
        tower = self._tower(side)
        if not texts:
            return Encoded(np.empty((0, self._card.dimension or tower.width), dtype=np.float32))
        prefix = side.prefix_for(self._instruction)
        skip = 0 if self._card.pool_prompt else tower.tokenizer.prefix_length(prefix)
        return tower.encode(tower.tokenizer(texts, side, prefix), self._card, skip)

    def _find(self, side: Side) -> weights.Weights:
        if side.repository not in self._weights:
            # By repository, not by role: a variant may send queries through the documents' encoder.
            role = "document" if side.repository == self._card.document.repository else "query"
            self._weights[side.repository] = weights.find(
                self._card, self._setup, side.repository, role=role, revision=side.revision
            )
        return self._weights[side.repository]

    def _tower(self, side: Side) -> Tower:
        card, setup, wanted = self._card, self._setup, self._find(side)
        key = ("tower", wanted, card.append_eos, card.bidirectional)
        tower = cached_model(key, setup, lambda: Tower(wanted.fetch(), card, setup))
        if 0 < tower.limit < side.max_tokens:
            raise UserError(
                f"model {card.name}: its card allows {side.max_tokens} tokens, the weights in {tower.folder} "
                f"have {tower.limit} positions"
            )
        return tower
