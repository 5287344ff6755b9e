"""Loader `custom`: any Python object with `encode_queries` and `encode_corpus`, or with `encode`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.cost import Cost
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.encoder import Encoder, Role, check_finite
from r2med.models.encoders.model_cards import ModelCard
from r2med.models.encoders.ragged import Ragged
from r2med.models.encoders.user_objects import UserObjects, encoding_methods, guarded, in_one_line

DICT_ERRORS = (TypeError, KeyError, AttributeError, IndexError)
"""Errors that code with `document["text"]` or `document.get("text")` raises when it gets a string."""


class CustomEncoder(Encoder):
    """Encoder that uses a user's object. The object itself handles prefix, lengths and batches."""

    def __init__(self, card: ModelCard, instruction: Instruction, runtime: Runtime, store: object = None) -> None:
        self._opened_with = (card, instruction, runtime)
        self._object = UserObjects.of(runtime).get(card.repository)
        self._methods = encoding_methods(self._object.model, f"model {card.repository}")
        self._path = card.repository
        self._generated = card.generated
        self._wants_dicts: bool | None = None

    def __reduce__(self) -> tuple[type[CustomEncoder], tuple[ModelCard, Instruction, Runtime]]:
        return type(self), self._opened_with

    @property
    def needs(self) -> WorkNeeds:
        """Where it can be opened. An object that exists only in this process stays here."""
        return self._object.needs

    def key(self, role: Role) -> dict[str, Any]:
        """Return the object's name, the digest of its module's source, and its revision."""
        return {**self._object.key(), "method": self._method_name(role)}

    def encode(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return one row per text, in their order. Raises UserError if the object returned something else."""
        name = self._method_name(role)
        if not texts:
            return Ragged.single(np.empty((0, 0), dtype=np.float32))
        returned = self._call(getattr(self._object.model, name), list(texts), name)
        vectors = self._object.numbers(returned, len(texts), name, "row per text").astype(np.float32)
        check_finite(vectors, hint=f"from {self._path}.{name}")
        return Ragged.single(vectors, Cost(texts=len(texts)))

    def _method_name(self, role: Role) -> str:
        side = self._generated if role == "generated" else role
        return self._methods["document" if side == "document" else "query"]

    def _call(self, method: Callable[[list[Any]], Any], texts: list[str], name: str) -> Any:
        """Call the method with strings. If a corpus method cannot read strings, it gets `{"text": …}` from then on.

        Both forms are in use and the signature does not show which is needed, so strings are tried first. If both fail,
        the first error is shown, because it may be an error of the method itself.
        """
        if name == self._methods["query"] or self._wants_dicts is False:
            return guarded(method, texts, f"{self._path}.{name}")
        dicts = [{"text": text} for text in texts]
        if self._wants_dicts:
            return guarded(method, dicts, f"{self._path}.{name}")
        with in_one_line(f"{self._path}.{name}"):
            try:
                returned = method(list(texts))
                self._wants_dicts = False
            except DICT_ERRORS as error:
                try:
                    returned = method(list(dicts))
                except Exception:
                    raise error from None
                self._wants_dicts = True
        return returned
