"""The loader `remote-code`: models whose repository brings an `encode` of its own, run only if the user allows it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from r2med.data.dataset_cards import Instruction
from r2med.encoders import backends, device, weights
from r2med.encoders.batching import Rows, Worker, encode_in_batches
from r2med.encoders.contracts import Role, Vectors
from r2med.encoders.forward import dtype_setting, quiet
from r2med.encoders.loaded import loaded
from r2med.encoders.model_cards import ModelCard, Side
from r2med.encoders.tokenize import TextTokenizer
from r2med.encoders.vectors import normalised
from r2med.errors import UserError
from r2med.setup import Setup


class Copies:
    """A model on each device, and the tokenizer that says how long a text is."""

    def __init__(self, folder: Path, card: ModelCard, options: Setup) -> None:
        from transformers import AutoModel, AutoTokenizer

        self.places = device.devices(options.device)
        dtype = device.dtype_name(options.dtype, self.places[0])
        settings: dict[str, Any] = {"trust_remote_code": True, "local_files_only": True}
        weights.check_trust(folder, card.name, options)
        with weights.loading(card.name, folder), quiet():
            self.tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(str(folder), **settings))
            self.models = [
                AutoModel.from_pretrained(str(folder), **settings, **dtype_setting(dtype)).eval().to(place)
                for place in self.places
            ]
        if not hasattr(self.models[0], "encode"):
            raise UserError(f"model {card.name}: the code in {folder} has no encode method, is it an embedding model?")
        self.accepted = _accepted(self.models[0].encode)
        self.budgets = [device.tokens_per_batch(options.tokens_per_batch, place) for place in self.places]


def _accepted(method: Any) -> set[str]:
    found = set()
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            found.add(name)
    return found


class RemoteCodeEncoder:
    """Encodes with a model's own method, in batches by token budget."""

    def __init__(self, card: ModelCard, instruction: Instruction, options: Setup) -> None:
        if not options.trust_remote_code:
            raise weights.not_trusted(card.name)
        self._card, self._instruction, self._options = card, instruction, options
        backends.only_torch(card, options)
        self._dtype = device.dtype_name(options.dtype, device.devices(options.device)[0])
        # A commit, even if the card names none: code that changes under a run would be allowed unread.
        self._found = weights.find(card, options)
        self._used: Counter[str] = Counter()

    def describe(self, role: Role) -> dict[str, Any]:
        """Return what the vectors of a role depend on."""
        side = self._card.side(role)
        return {
            "loader": self._card.loader,
            "model": self._found.repository or self._card.name,
            "revision": self._found.revision,
            "prefix": side.prefix_for(self._instruction),
            "max_tokens": side.max_tokens,
            "normalise": self._card.normalise,
            "dtype": self._dtype,
        }

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text, in their order."""
        side = self._card.side(role)
        if not texts:
            return np.empty((0, self._card.dimension), dtype=np.float32)
        copies, prefix = self._load(), side.prefix_for(self._instruction)
        tokens = copies.tokenizer(texts, side, prefix)
        workers = [
            Worker(_rows(copies, model, texts, side, prefix), budget, device.is_out_of_memory, device.release)
            for model, budget in zip(copies.models, copies.budgets, strict=True)
        ]
        vectors = encode_in_batches(tokens.lengths(), workers)
        copies.budgets = [worker.budget for worker in workers]
        self._used.update(texts=len(texts), tokens=sum(tokens.lengths()), truncated=tokens.truncated)
        return normalised(vectors) if self._card.normalise else vectors

    def usage(self) -> dict[str, float]:
        """Return texts, tokens and truncated texts so far, by the model's tokenizer."""
        return {name: float(self._used[name]) for name in ("texts", "tokens", "truncated")}

    def _load(self) -> Copies:
        card, options = self._card, self._options
        settings = (options.device, options.dtype, options.tokens_per_batch)
        key = ("remote code", self._found, card.pool_prompt, settings)
        return loaded(key, lambda: Copies(self._found.fetch(), card, options))


def _rows(copies: Copies, model: Any, texts: Sequence[str], side: Side, prefix: str) -> Rows:
    def rows(batch: Sequence[int]) -> Vectors:
        inputs = [texts[i] for i in batch]
        settings: dict[str, Any] = {"max_length": side.max_tokens, "batch_size": len(inputs), "instruction": prefix}
        settings = {name: value for name, value in settings.items() if name in copies.accepted}
        if "instruction" not in settings:
            inputs = [prefix + text for text in inputs]
        with torch.inference_mode():
            found = model.encode(inputs, **settings)
        if isinstance(found, torch.Tensor):
            found = found.float().cpu().numpy()
        vectors = np.asarray(found, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(inputs):
            raise UserError(f"the model's own code gave {vectors.shape} for {len(inputs)} texts, not a row for each")
        return vectors

    return rows


def open_remote_code(card: ModelCard, instruction: Instruction, options: Setup, store: object) -> RemoteCodeEncoder:
    """Return the encoder of a card; nothing is loaded yet."""
    return RemoteCodeEncoder(card, instruction, options)
