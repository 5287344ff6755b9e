"""The loader `sentence-transformers`: the library's own modules, fed with batches by token budget."""

from __future__ import annotations

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
from r2med.encoders.specs import card_for
from r2med.encoders.tokenize import TextTokenizer, Tokens, padded
from r2med.encoders.vectors import check_finite, normalised
from r2med.setup import Setup

__all__ = ["SentenceEncoder", "card_for", "open_sentence"]

PLAIN = {"Transformer", "Pooling", "Dense", "Normalize", "LayerNorm", "Dropout"}
"""Modules that take token ids and a mask, and treat every text alike."""

SAMPLE = "A text, as any other: naïve 12-lead ECG."


class Copies:
    """A model on each device, and its tokenizer where its input is no more than that makes it."""

    def __init__(self, folder: Path, card: ModelCard, options: Setup) -> None:
        from sentence_transformers import SentenceTransformer

        places = device.devices(options.device)
        dtype = device.dtype_name(options.dtype, places[0])
        weights.check_trust(folder, card.name, options)
        with weights.loading(card.name, folder), quiet():
            self.models = [
                SentenceTransformer(
                    str(folder),
                    device=place,
                    trust_remote_code=options.trust_remote_code,
                    local_files_only=True,
                    model_kwargs=dtype_setting(dtype),
                ).eval()
                for place in places
            ]
        self.places = places
        self.budgets = [device.tokens_per_batch(options.tokens_per_batch, place) for place in places]
        self.own_limit = int(self.models[0].max_seq_length or 512)
        for model in self.models:
            if not card.pool_prompt:
                model.set_pooling_include_prompt(False)
        self.tokenizer = self._plain_tokenizer()

    def limit(self, side: Side) -> int:
        """Return a side's limit: the card's, or the model's own."""
        return side.max_tokens or self.own_limit

    def _plain_tokenizer(self) -> TextTokenizer | None:
        """Return the tokenizer, if the ids it gives are all that the modules would be given by the library."""
        model = self.models[0]
        ours = all(
            type(module).__name__ in PLAIN and type(module).__module__.startswith("sentence_transformers.")
            for module in model
        )
        if not ours or getattr(model.tokenizer, "backend_tokenizer", None) is None:
            return None
        # Lower-casing, chat templates and what later releases may add: seen by trying.
        own = TextTokenizer(model.tokenizer)
        ids = own([SAMPLE], Side(max_tokens=self.own_limit), "").ids[0]
        theirs = self.preprocess([SAMPLE])
        return own if theirs["input_ids"][0].tolist() == ids.tolist() and set(theirs) <= KNOWN_INPUTS else None

    def preprocess(self, texts: list[str]) -> dict[str, Any]:
        """Return what the library makes of texts; the method's name has changed over its releases."""
        model = self.models[0]
        found: dict[str, Any] = (model.preprocess if hasattr(model, "preprocess") else model.tokenize)(texts)
        return found


KNOWN_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "modality"}


class SentenceEncoder:
    """Encodes with a sentence-transformers model; weights are loaded with the first text."""

    def __init__(self, card: ModelCard, instruction: Instruction, options: Setup) -> None:
        self._card, self._instruction, self._options = card, instruction, options
        backends.only_torch(card, options)
        self._dtype = device.dtype_name(options.dtype, device.devices(options.device)[0])
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
            "max_tokens": side.max_tokens or "the model's own",
            "pool_prompt": self._card.pool_prompt,
            "normalise": self._card.normalise,
            "dtype": self._dtype,
        }

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one row per text, in their order."""
        side = self._card.side(role)
        copies = self._load()
        if not texts:
            return np.empty((0, self._width(copies)), dtype=np.float32)
        prefix = side.prefix_for(self._instruction)
        vectors = (
            _by_the_library(copies, list(texts), side, prefix, role)
            if copies.tokenizer is None
            else self._by_tokens(copies, copies.tokenizer, texts, side, prefix)
        )
        self._used.update(texts=len(texts))
        return normalised(vectors) if self._card.normalise else vectors

    def usage(self) -> dict[str, float]:
        """Return texts, tokens and truncated texts so far; a model with modules of its own tells no tokens."""
        return {name: float(self._used[name]) for name in ("texts", "tokens", "truncated")}

    def _by_tokens(
        self, copies: Copies, tokenizer: TextTokenizer, texts: Sequence[str], side: Side, prefix: str
    ) -> Vectors:
        tokens = tokenizer(texts, side.model_copy(update={"max_tokens": copies.limit(side)}), prefix)
        skip = tokenizer.prefix_length(prefix) if prefix else 0
        workers = [
            Worker(_rows(copies, model, place, tokens, skip), budget, device.is_out_of_memory, device.release)
            for model, place, budget in zip(copies.models, copies.places, copies.budgets, strict=True)
        ]
        vectors = encode_in_batches(tokens.lengths(), workers)
        copies.budgets = [worker.budget for worker in workers]
        self._used.update(tokens=sum(tokens.lengths()), truncated=tokens.truncated)
        return vectors

    def _load(self) -> Copies:
        card, options = self._card, self._options
        settings = (options.device, options.dtype, options.tokens_per_batch)
        key = ("sentence", self._found, card.pool_prompt, settings)
        return loaded(key, lambda: Copies(self._found.fetch(), card, options))

    def _width(self, copies: Copies) -> int:
        model = copies.models[0]
        old = "get_sentence_embedding_dimension"
        width = getattr(model, "get_embedding_dimension", None) or getattr(model, old)
        return int(width() or self._card.dimension)


def _rows(copies: Copies, model: Any, place: str, tokens: Tokens, skip: int) -> Rows:
    pad = copies.tokenizer.pad if copies.tokenizer else 0

    def rows(batch: Sequence[int]) -> Vectors:
        ids = [tokens.ids[i] for i in batch]
        matrix = torch.from_numpy(padded(ids, pad)).to(place)
        lengths = torch.tensor([len(row) for row in ids], device=place)
        mask = (torch.arange(matrix.shape[1], device=place) < lengths[:, None]).long()
        features: dict[str, Any] = {"input_ids": matrix, "attention_mask": mask}
        if skip:  # read by pooling that leaves the prompt out; where nothing is left, it gives a vector of zeros
            features["prompt_length"] = skip
        with torch.inference_mode():
            found: Vectors = model(features)["sentence_embedding"].float().cpu().numpy()
            return found

    return rows


def _by_the_library(copies: Copies, texts: list[str], side: Side, prefix: str, role: Role) -> Vectors:
    """Encode with the library's own loop: for modules that read more than token ids."""
    model = copies.models[0]
    if side.max_tokens:
        model.max_seq_length = side.max_tokens
    method = getattr(model, "encode_document" if role == "document" else "encode_query", model.encode)
    rows = method(texts, prompt=prefix, batch_size=32, convert_to_numpy=True, show_progress_bar=False)
    vectors = np.asarray(rows, dtype=np.float32)
    check_finite(vectors)
    return vectors


def open_sentence(card: ModelCard, instruction: Instruction, options: Setup, store: object) -> SentenceEncoder:
    """Return the encoder of a card; nothing is loaded yet."""
    return SentenceEncoder(card, instruction, options)
