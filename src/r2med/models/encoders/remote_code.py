"""Loader `remote-code`: models with their own `encode` in their repository. It runs only if the user allows it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices, model_loading
from r2med.models.encoders.encoder import Role, Vectors, normalised
from r2med.models.encoders.local_encoder import LocalModel
from r2med.models.encoders.model_cards import ModelCard
from r2med.models.encoders.replicas import Replicas, Rows
from r2med.models.encoders.tokenize import TextTokenizer, Tokens
from r2med.models.encoders.weights import Weights


class RemoteModel(LocalModel):
    """The replicas of a model, and its tokenizer, which measures the length of a text."""

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        from transformers import AutoModel, AutoTokenizer

        folder = weights.fetch()
        settings: dict[str, Any] = {"trust_remote_code": True, "local_files_only": True}

        def load(device: str, dtype: str) -> Any:
            model = AutoModel.from_pretrained(str(folder), **settings, **devices.dtype_setting(dtype))
            return model.eval().to(device)

        model_loading.check_trust(folder, card.name, setup)
        self._name = card.name
        with model_loading.loading(card.name, folder):
            self.tokenizer: TextTokenizer = TextTokenizer(AutoTokenizer.from_pretrained(str(folder), **settings))
            self.replicas = Replicas(setup, load)
        if not hasattr(self.replicas.first, "encode"):
            raise UserError(
                f"model {card.name}: the code in {folder} has no encode method; it may not be an embedding model"
            )
        self._accepted = _parameters(self.replicas.first.encode)

    def rows(self, texts: Sequence[str], tokens: Tokens, card: ModelCard, role: Role, prefix: str) -> Rows[Any]:
        """Return the function that gives a batch of texts to the model's own code. Token ids only measure them."""
        limit = card.side(role).max_tokens

        def rows(model: Any, batch: Sequence[int]) -> Vectors:
            vectors = self._call(model, [texts[i] for i in batch], limit, prefix)
            return normalised(vectors) if card.normalise else vectors

        return rows

    def _call(self, model: Any, texts: list[str], limit: int, prefix: str) -> Vectors:
        import torch

        settings: dict[str, Any] = {"max_length": limit, "batch_size": len(texts), "instruction": prefix}
        settings = {name: value for name, value in settings.items() if name in self._accepted}
        if "instruction" not in settings:
            texts = [prefix + text for text in texts]
        try:
            with torch.inference_mode():
                answer = model.encode(texts, **settings)
        except Exception as error:
            if devices.is_out_of_memory(error):
                raise
            raise UserError(
                f"model {self._name}: its own code failed: {type(error).__name__}: {str(error)[:200]}"
            ) from error
        if isinstance(answer, torch.Tensor):
            answer = answer.float().cpu().numpy()
        vectors = np.asarray(answer, dtype=np.float32)
        if vectors.ndim != 2 or len(vectors) != len(texts):
            raise UserError(
                f"the model's own code returned shape {vectors.shape} for {len(texts)} texts, not one row for each"
            )
        return vectors


def _parameters(method: Any) -> set[str]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return {name for name, parameter in inspect.signature(method).parameters.items() if parameter.kind in named}
