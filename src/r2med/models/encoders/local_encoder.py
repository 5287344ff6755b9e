"""Encoders whose weights are on this machine, for all loaders that run in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices
from r2med.models.encoders.encoder import NO_PASSAGES, Encoded, Encoder, Role
from r2med.models.encoders.known_pairs import check_once, check_versions
from r2med.models.encoders.model_cards import ModelCard, Side
from r2med.models.encoders.replicas import cached_model
from r2med.models.encoders.tokenize import TextTokenizer
from r2med.models.encoders.weights import Weights, find, find_adapted


class LocalModel(ABC):
    """The copies of a model, and its tokenizer. Each loader has a subclass, and several cards may share one model."""

    loaded_by: ClassVar[tuple[str, ...]] = ()
    """Fields of the card that require a separate model in memory."""
    has_backends: ClassVar[bool] = True
    """False if only torch can run it, so that keys do not name the backend."""
    width: int = 0
    """Number of dimensions of a vector, or 0 if the model does not say."""
    limit: int = 0
    """Number of tokens that the model can read, or 0 if it does not say."""
    tokenizer: TextTokenizer | None = None
    """The tokenizer that measures texts, or None if the model needs more than token ids."""

    @classmethod
    @abstractmethod
    def check(cls, card: ModelCard, setup: Setup) -> None:
        """Raise UserError if the card or the setup cannot be used. Nothing is loaded."""

    @classmethod
    def key(cls, card: ModelCard, side: Side) -> dict[str, Any]:
        """Return what vectors depend on besides weights, prefix, lengths and precision."""
        return {}

    @abstractmethod
    def __init__(self, weights: Weights, card: ModelCard, setup: Setup) -> None:
        """Load the weights."""

    @abstractmethod
    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Encoded:
        """Return one row per text, in their order, and the cost."""


LOCAL_MODELS = {
    "transformers": "r2med.models.encoders.transformer:Tower",
    "sentence-transformers": "r2med.models.encoders.sentence:SentenceModel",
    "remote-code": "r2med.models.encoders.remote_code:RemoteModel",
    "multi-vector": "r2med.models.encoders.late_models:MultiVectorModel",
    "sparse": "r2med.models.encoders.late_models:SparseModel",
}
"""Class of the loaded models of each loader, as "module:Class"."""


class LocalEncoder(Encoder):
    """Encoder for a card with weights on this machine.

    The weights are loaded with the first text. Stored vectors need no weights.
    """

    cuts_passages = True

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        self._card = card
        self._instruction = instruction
        self._runtime = runtime
        module, _, name = LOCAL_MODELS[card.loader].partition(":")
        self._loads: type[LocalModel] = getattr(import_module(module), name)
        self._loads.check(card, runtime.setup)
        engine = devices.backend_key(runtime, merged=bool(card.base))
        self._engine = engine if self._loads.has_backends else {"dtype": engine["dtype"]}
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
        chosen = self._find(side)
        return {
            "loader": card.loader,
            "model": chosen.repository or card.name,
            "revision": chosen.revision,
            **chosen.base_key(),
            "prefix": side.prefix_for(self._instruction),
            "max_tokens": side.max_tokens or "the model's own",
            "normalise": card.normalise,
            **self._loads.key(card, side),
            **self._engine,
        }

    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one row per text, in their order, and what they took.

        Raises UserError if the model is known not to work with the installed versions, or fails its known pairs.
        """
        if not self._checked:
            check_versions(self._card)
            self._checked = True  # before the pairs are encoded
            try:
                check_once(self, self._card, self._runtime.store)
            except BaseException:
                self._checked = False
                raise
        side = self._card.side(role)
        model = self._model(side)
        if not texts:
            return Encoded(np.empty((0, self._card.dimension or model.width), dtype=np.float32))
        return model.encode(texts, self._card, role, side.prefix_for(self._instruction))

    def passages(self, texts: Sequence[str], tokens: int) -> list[list[str]]:
        """Return the passages of each document, cut by the model's tokenizer."""
        side, model = self._card.side("document"), self._model(self._card.document)
        limit = side.max_tokens or model.limit
        if 0 < limit < tokens:
            raise UserError(f"passages={tokens}: {self._card.name} reads at most {limit} tokens of a document")
        if model.tokenizer is None or not model.tokenizer.can_cut:
            raise UserError(NO_PASSAGES.format(model=self._card.name))
        return model.tokenizer.passages(texts, side, side.prefix_for(self._instruction), tokens)

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
        card, runtime, chosen = self._card, self._runtime, self._find(side)
        key = (card.loader, chosen, *(getattr(card, field) for field in self._loads.loaded_by))
        return cached_model(key, runtime, lambda: self._loads(chosen, card, runtime.setup))
