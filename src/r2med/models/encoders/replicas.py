"""Replicas: copies of one model, one per device, that share batches of texts; and the models that stay in memory.

Encoders and cross-encoders with local weights are built on this module. It handles devices and precision, batches,
out-of-memory errors and the cost.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.engine.work import Needs
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.encoders import devices, weights
from r2med.models.encoders.batching import Worker, encode_in_batches
from r2med.models.encoders.encoder import NO_PASSAGES, Encoded, Encoder, Role, Vectors, batch_receiver, timed
from r2med.models.encoders.known_pairs import check_once, check_versions
from r2med.models.encoders.model_cards import ModelCard, Side
from r2med.models.encoders.tokenize import TextTokenizer

Model = TypeVar("Model")
Loaded = TypeVar("Loaded")


class Replicas(Generic[Model]):
    """One copy of a model on each device of the setup."""

    def __init__(self, setup: Setup, load: Callable[[str, str], Model], merged: bool = False) -> None:
        """Load the copies. `load(device, dtype)` returns one of them. `merged`: it merges an adapter into them."""
        self.devices, self.dtype = devices.placement(setup, merged)
        self.models = [load(device, self.dtype) for device in self.devices]
        self._budgets = [devices.tokens_per_batch(setup.tokens_per_batch, device) for device in self.devices]

    @property
    def first(self) -> Model:
        """One of the copies, for properties that all copies share."""
        return self.models[0]

    def run(
        self,
        lengths: Sequence[int],
        rows: Callable[[Model, Sequence[int]], Vectors],
        cut: Sequence[bool] = (),
        estimated: bool = False,
    ) -> Encoded:
        """Return one row per text, in their order, and the cost.

        `lengths` are the numbers of tokens of the texts. `cut` says which texts were cut. Lengths that are `estimated`
        are not part of the cost. `rows(model, positions)` encodes the texts at some positions with one of the copies.
        Raises DoesNotFitError if one text alone is too long for the device, and NotFiniteError for a row with NaN or
        infinity.
        """
        receiver = batch_receiver()

        def finished(positions: Sequence[int], vectors: Vectors) -> None:
            if receiver is not None:
                receiver(len(positions))

        workers = [
            Worker(partial(rows, model), budget, devices.is_out_of_memory, devices.release)
            for model, budget in zip(self.models, self._budgets, strict=True)
        ]
        vectors = encode_in_batches(lengths, workers, finished)
        self._budgets = [worker.budget for worker in workers]  # A batch size that did not fit once is not tried again.
        return Encoded(vectors, Cost(texts=len(lengths), tokens=0 if estimated else sum(lengths), cut=sum(cut)))


def cached_model(key: Hashable, runtime: Runtime, load: Callable[[], Loaded]) -> Loaded:
    """Return the model of this key, loaded once for all datasets. The least recently used models are dropped first.

    If the model does not fit beside the others, they are dropped. So encoders must not keep a reference to it. Raises
    UserError if it does not fit at all.
    """

    def loaded() -> Loaded:
        model = _attempt(load)
        if model is None and len(runtime.models):
            runtime.models.clear()
            gc.collect()
            devices.release()
            model = _attempt(load)
        if model is None:
            raise UserError(
                "the model does not fit into the memory of the device; use another device (--device) or dtype "
                "(--dtype)",
            )
        return model

    return runtime.models.get(key, loaded).value


def _attempt(load: Callable[[], Loaded]) -> Loaded | None:
    try:
        return load()
    except Exception as error:
        if not devices.is_out_of_memory(error):
            raise
        return None


class LoadedModel(Protocol):
    """A tokenizer and the replicas of its model."""

    width: int
    """Number of dimensions of a vector, or 0 if the model does not say."""

    @property
    def limit(self) -> int:
        """Number of tokens that the model can read, or 0 if it does not say."""

    @property
    def tokenizer(self) -> TextTokenizer | None:
        """The tokenizer that measures texts, or None if the model needs more than token ids."""

    def __init__(self, weights: weights.Weights, card: ModelCard, setup: Setup) -> None: ...

    def encode(self, texts: Sequence[str], card: ModelCard, role: Role, prefix: str) -> Encoded:
        """Return one row per text, in their order, and the cost. Several cards may share one model in memory."""


class LocalEncoder(Encoder):
    """Encoder for a card with weights on this machine.

    The weights are loaded with the first text. Stored vectors need no weights.
    """

    loads: ClassVar[type[LoadedModel]]
    """Class that loads weights."""
    loaded_by: ClassVar[tuple[str, ...]] = ()
    """Fields of the card that require a separate model in memory."""
    cuts_passages = True
    key_fields: ClassVar[tuple[str, ...]] = ()
    """Further fields of the card that vectors depend on."""

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        self._card = card
        self._instruction = instruction
        self._runtime = runtime
        self._engine = devices.backend_key(runtime, merged=bool(card.base))
        self._weights: dict[str, weights.Weights] = {}
        self._checked = False

    def __reduce__(self) -> tuple[type[LocalEncoder], tuple[ModelCard, Instruction, Runtime]]:
        # The other machine looks for the weights itself.
        return type(self), (self._card, self._instruction, self._runtime)

    @property
    def needs(self) -> Needs:
        """Where it can encode."""
        return Needs(gpu=True)

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
            **{field: getattr(card, field) for field in self.key_fields},
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
        return self._encode(texts, role)

    @timed
    def _encode(self, texts: Sequence[str], role: Role) -> Encoded:
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

    def _find(self, side: Side) -> weights.Weights:
        if side.repository not in self._weights:
            # By repository, not by role, because a variant may encode queries with the documents' encoder.
            role = "document" if side.repository == self._card.document.repository else "query"
            if self._card.base and not side.repository:
                found = weights.find_adapted(self._card, self._runtime.setup, self._runtime.store)
                return self._weights.setdefault(side.repository, found)
            self._weights[side.repository] = weights.find(
                self._card,
                self._runtime.setup,
                side.repository,
                role=role,
                revision=side.revision,
                store=self._runtime.store,
            )
        return self._weights[side.repository]

    def _model(self, side: Side) -> LoadedModel:
        card, runtime, chosen = self._card, self._runtime, self._find(side)
        key = (card.loader, chosen, *(getattr(card, field) for field in self.loaded_by))
        return cached_model(key, runtime, lambda: type(self).loads(chosen, card, runtime.setup))
