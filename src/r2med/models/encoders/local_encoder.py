"""Encoders whose weights are on this machine, for all loaders that run in this process."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices
from r2med.models.encoders.encoder import NO_PASSAGES, Encoder, Role
from r2med.models.encoders.known_pairs import check_once
from r2med.models.encoders.model_cards import LATE_LOADERS, ModelCard, Side
from r2med.models.encoders.model_loading import not_trusted
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.replicas import Replicas, Rows, cached_model
from r2med.models.encoders.tokenize import TextTokenizer, Tokens
from r2med.models.encoders.weights import Weights, find, find_adapted


class LocalModel:
    """The copies of a model, and its tokenizer. Each loader has a subclass, and several cards may share one model.

    A model with a tokenizer is given batches of texts (`rows`). One without encodes by a loop of its own (`encode`).
    """

    replicas: Replicas[Any]
    tokenizer: TextTokenizer | None = None
    """The tokenizer that measures texts, or None if the model needs more than token ids."""
    width: int = 0
    """Number of dimensions of a vector, or 0 if the model does not say."""
    limit: int = 0
    """Number of tokens that are read if the card does not say it."""
    positions: int = 0
    """Number of tokens that the weights can read at most, or 0 if they do not say."""

    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        """Load the weights."""
        raise NotImplementedError

    def rows(self, texts: Sequence[str], tokens: Tokens, card: ModelCard, role: Role, prefix: str) -> Rows[Any]:
        """Return the function that encodes the texts at some positions with one copy, one row each."""
        raise NotImplementedError

    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Ragged:
        """Return the rows of each text, in their order, and the cost."""
        raise NotImplementedError


LOCAL_MODELS = {
    "transformers": "r2med.models.encoders.transformer:Tower",
    "sentence-transformers": "r2med.models.encoders.sentence:SentenceModel",
    "remote-code": "r2med.models.encoders.remote_code:RemoteModel",
    "multi-vector": "r2med.models.encoders.late_models:MultiVectorModel",
    "sparse": "r2med.models.encoders.late_models:SparseModel",
}
"""Class of the loaded models of each loader, as "module:Class"."""

KEY_FIELDS = {
    "transformers": ("pooling", "pool_prompt", "bidirectional", "append_eos"),
    "sentence-transformers": ("pool_prompt",),
}
"""Fields of the card that vectors depend on besides weights, prefix, lengths and precision."""

BACKEND_LOADERS = ("transformers", "sentence-transformers")
"""Loaders of models that OpenVINO can run, too."""


class LocalEncoder(Encoder):
    """Encoder for a card with weights on this machine.

    The weights are loaded with the first text. Stored vectors need no weights.
    """

    cuts_passages = True

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        self._card = card
        self._instruction = instruction
        self._runtime = runtime
        if card.loader == "transformers" and not card.pooling:
            raise UserError(f"model {card.name}: its card has no pooling; use cls, mean or last")
        if card.loader == "remote-code" and not runtime.setup.trust_remote_code:
            raise not_trusted(card.name)
        if card.loader not in BACKEND_LOADERS:
            devices.check_torch(runtime.setup, f"model {card.name} ({card.loader})")
        self._engine = devices.backend_key(runtime, merged=bool(card.base))
        if card.loader == "remote-code":
            del self._engine["backend"]  # only torch can run it
        self._weights: dict[str, Weights] = {}
        self._checked = False

    def __reduce__(self) -> tuple[type[LocalEncoder], tuple[ModelCard, Instruction, Runtime]]:
        # The other machine looks for the weights itself.
        return type(self), (self._card, self._instruction, self._runtime)

    @property
    def needs(self) -> WorkNeeds:
        """Where it can encode."""
        return WorkNeeds(gpu=True)

    @property
    def pinned(self) -> bool:
        """False if a push by the model's authors would change the weights of this name."""
        return all(self._find(side).pinned for side in (self._card.query, self._card.document))

    @property
    def in_folder(self) -> bool:
        """True if the documents' weights are in a folder.

        Their revision is then a digest instead of a hub commit.
        """
        return self._find(self._card.document).folder is not None

    @property
    def libraries(self) -> tuple[str, ...]:
        """Packages that compute the vectors. Their versions are stored with the vectors."""
        sentence = () if self._card.loader in ("transformers", "remote-code") else ("sentence-transformers",)
        other = ("openvino",) if self._engine.get("backend") == "openvino" else ()
        return ("torch", "transformers", *sentence, *other)

    def key(self, role: Role) -> dict[str, Any]:
        """Return everything that the vectors of a role depend on. The card's name and similarity are not part of it."""
        card, side = self._card, self._card.side(role)
        weights = self._find(side)
        of_transformers = {"pair_with_empty": side.pair_with_empty} if card.loader == "transformers" else {}
        return {
            "loader": card.loader,
            "model": weights.repository or card.name,
            "revision": weights.revision,
            **weights.base_key(),
            "prefix": self._instruction.fill(side.prefix),
            "max_tokens": side.max_tokens or "the model's own",
            "normalise": card.normalise,
            **{name: getattr(card, name) for name in KEY_FIELDS.get(card.loader, ())},
            **({"part": card.part} if card.part else {}),
            **of_transformers,
            **self._engine,
        }

    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return the rows of each text, in their order, and what they took.

        Raises UserError if the model is known not to work with the installed versions, or fails its known pairs.
        """
        card, side = self._card, self._card.side(role)
        if not self._checked:
            self._checked = True  # before the known pairs are encoded
            try:
                check_once(self, card, self._runtime.store)
            except BaseException:
                self._checked = False
                raise
        model = self._model(side)
        prefix = self._instruction.fill(side.prefix)
        if not texts:
            return Ragged.single(np.empty((0, card.dimension or model.width), dtype=np.float32))
        if model.tokenizer is None:
            return model.encode(texts, card, role, prefix)
        if 0 < model.positions < side.max_tokens:
            raise UserError(
                f"model {card.name}: its card allows {side.max_tokens} tokens, the weights have {model.positions} "
                "positions"
            )
        tokens = model.tokenizer(texts, side, prefix, side.max_tokens or model.limit)
        return model.replicas.run(tokens.lengths(), model.rows(texts, tokens, card, role, prefix), tokens.cut)

    def passages(self, texts: Sequence[str], tokens: int) -> list[list[str]]:
        """Return the passages of each document, cut by the model's tokenizer."""
        side, model = self._card.side("document"), self._model(self._card.document)
        limit = side.max_tokens or model.limit
        if 0 < limit < tokens:
            raise UserError(f"passages={tokens}: {self._card.name} reads at most {limit} tokens of a document")
        if model.tokenizer is None or not model.tokenizer.can_cut:
            raise UserError(NO_PASSAGES.format(model=self._card.name))
        return model.tokenizer.passages(texts, side, self._instruction.fill(side.prefix), tokens)

    def _find(self, side: Side) -> Weights:
        if side.repository not in self._weights:
            # By repository, not by role, because a variant may encode queries with the documents' encoder.
            role = "document" if side.repository == self._card.document.repository else "query"
            setup, store = self._runtime.setup, self._runtime.store
            self._weights[side.repository] = (
                find_adapted(self._card, setup, store)
                if self._card.base and not side.repository
                else find(self._card, setup, side.repository, role=role, revision=side.revision, store=store)
            )
        return self._weights[side.repository]

    def _model(self, side: Side) -> LocalModel:
        card, setup, weights = self._card, self._runtime.setup, self._find(side)
        # Cards share a model in memory unless they differ in what its class reads of them.
        read = card.append_eos, card.bidirectional, card.part, card.pool_prompt
        lengths = (card.query, card.document) if card.loader in LATE_LOADERS else ()  # these are set in the model

        def load() -> LocalModel:
            module, _, name = LOCAL_MODELS[card.loader].partition(":")
            model: LocalModel = getattr(import_module(module), name)(weights, card, setup)
            return model

        return cached_model((card.loader, weights, read, lengths), self._runtime, load)
