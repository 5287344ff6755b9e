"""The loader `transformers`: any encoder or decoder of the library, pooled as its card says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from r2med.data.dataset_cards import Instruction
from r2med.encoders import backends, device, weights
from r2med.encoders.batching import Worker, encode_in_batches
from r2med.encoders.contracts import Role, Vectors
from r2med.encoders.forward import Forward, load_model, quiet
from r2med.encoders.loaded import loaded
from r2med.encoders.model_cards import ModelCard, Side
from r2med.encoders.pooling import pool
from r2med.encoders.tokenize import TextTokenizer, Tokens, padded
from r2med.errors import UserError
from r2med.setup import Setup


class Tower:
    """A tokenizer and a copy of its model on each device."""

    def __init__(self, folder: Path, card: ModelCard, options: Setup) -> None:
        from transformers import AutoTokenizer

        self.folder = folder
        places = device.devices(options.device)
        dtype = device.dtype_name(options.dtype, places[0])
        with weights.loading(card.name, folder):
            with quiet():
                tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
            self.tokenizer = TextTokenizer(tokenizer, card.append_eos)
            self._forwards = [
                backends.compiled(
                    Forward(load_model(folder, dtype, place, card.name), place, card.bidirectional), options.backend
                )
                for place in places
            ]
        self.budgets = [device.tokens_per_batch(options.tokens_per_batch, place) for place in places]
        config = self._forwards[0].model.config
        self.limit = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.width = int(getattr(config, "hidden_size", 0) or 0)

    def workers(self, tokens: Tokens, card: ModelCard, skip: int) -> list[Worker]:
        """Return what encodes these tokens on each device."""
        return [
            Worker(self._rows(forward, tokens, card, skip), budget, device.is_out_of_memory, device.release)
            for forward, budget in zip(self._forwards, self.budgets, strict=True)
        ]

    def _rows(self, forward: Forward, tokens: Tokens, card: ModelCard, skip: int) -> Any:
        def rows(batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = [tokens.types[i] for i in batch] if tokens.types else None
            lengths = np.asarray([len(row) for row in ids], dtype=np.int64)
            with torch.inference_mode():
                hidden, sizes = forward(
                    padded(ids, self.tokenizer.pad),
                    lengths,
                    padded(types, 0) if types else None,
                )
                pooled = pool(hidden, sizes, card.pooling, skip)
                if card.normalise:
                    pooled = torch.nn.functional.normalize(pooled, dim=1)
                found: Vectors = pooled.cpu().numpy()
                return found

        return rows


class TransformerEncoder:
    """Encodes by a card; weights are loaded with the first text, so that stored vectors need none."""

    def __init__(self, card: ModelCard, instruction: Instruction, options: Setup) -> None:
        if card.pooling not in ("cls", "mean", "last"):
            raise UserError(f"model {card.name}: its card has no pooling: cls, mean or last")
        self._card, self._instruction, self._options = card, instruction, options
        places = device.devices(options.device)
        dtype = device.dtype_name(options.dtype, places[0])
        self._backend = backends.description(options.backend, dtype, options.dtype, places)
        self._weights: dict[str, weights.Weights] = {}
        self._used: Counter[str] = Counter()

    def describe(self, role: Role) -> dict[str, Any]:
        """Return what the vectors of a role depend on; the card's name and similarity are no part of it."""
        card, side = self._card, self._card.side(role)
        found = self._find(role)
        return {
            "loader": card.loader,
            "model": found.repository or card.name,
            "revision": found.revision,
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

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text, in their order."""
        side = self._card.side(role)
        tower = self._tower(role, side)
        if not texts:
            return np.empty((0, self._card.dimension or tower.width), dtype=np.float32)
        prefix = side.prefix_for(self._instruction)
        tokens = tower.tokenizer(texts, side, prefix)
        skip = 0 if self._card.pool_prompt else tower.tokenizer.prefix_length(prefix)
        workers = tower.workers(tokens, self._card, skip)
        vectors = encode_in_batches(tokens.lengths(), workers)
        tower.budgets = [worker.budget for worker in workers]  # what did not fit once is not tried again
        self._used.update(texts=len(texts), tokens=sum(tokens.lengths()), truncated=tokens.truncated)
        return vectors

    def usage(self) -> dict[str, float]:
        """Return texts, tokens and truncated texts so far."""
        return {name: float(self._used[name]) for name in ("texts", "tokens", "truncated")}

    def _find(self, role: Role) -> weights.Weights:
        side = self._card.side(role)
        if side.repository not in self._weights:
            # By repository, not by role: a variant may send queries through the documents' encoder.
            tower = "document" if side.repository == self._card.document.repository else "query"
            self._weights[side.repository] = weights.find(
                self._card, self._options, side.repository, role=tower, revision=side.revision
            )
        return self._weights[side.repository]

    def _tower(self, role: Role, side: Side) -> Tower:
        found = self._find(role)
        card, options = self._card, self._options
        settings = (options.device, options.dtype, options.backend, options.tokens_per_batch)
        key = ("tower", found, card.append_eos, card.bidirectional, settings)
        tower = loaded(key, lambda: Tower(found.fetch(), card, options))
        if 0 < tower.limit < side.max_tokens:
            raise UserError(
                f"model {self._card.name}: its card allows {side.max_tokens} tokens, the weights in {tower.folder} "
                f"have {tower.limit} positions"
            )
        return tower


def open_transformer(card: ModelCard, instruction: Instruction, options: Setup, store: object) -> TransformerEncoder:
    """Return the encoder of a card; nothing is loaded yet."""
    return TransformerEncoder(card, instruction, options)
