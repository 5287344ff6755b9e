"""Encode a long document as several passages, each with a vector of its own. Queries are encoded as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.foundation.core.cost import total
from r2med.foundation.engine.work import Needs
from r2med.models.encoders.encoder import Encoded, Encoder, Role, batch_receiver, receiving
from r2med.models.encoders.ragged import Ragged

DOCUMENTS_AT_ONCE = 256
"""Number of documents whose passages are encoded together, between two reports of progress."""


class PassageEncoder(Encoder):
    """An encoder whose documents are cut into passages of at most some tokens, without overlap."""

    def __init__(self, encoder: Encoder, tokens: int) -> None:
        self._encoder, self._tokens = encoder, tokens
        self.cuts_passages = encoder.cuts_passages

    def key(self, role: Role) -> dict[str, Any]:
        """Return everything that the vectors of a role depend on."""
        key = self._encoder.key(role)
        return {**key, "passages": self._tokens} if role == "document" else key

    def encode(self, texts: Sequence[str], role: Role) -> Encoded:
        """Return one row per text."""
        return self._encoder.encode(texts, role)

    def encode_ragged(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return a row for each passage of a document, and one for each text of another role."""
        if role != "document":
            return self._encoder.encode_ragged(texts, role)
        receiver, parts = batch_receiver(), []
        for start in range(0, len(texts), DOCUMENTS_AT_ONCE):
            some = texts[start : start + DOCUMENTS_AT_ONCE]
            parts.append(self._passages(some))
            if receiver is not None:
                receiver(len(some))
        if not parts:
            return self._encoder.encode_ragged(texts, role)
        sizes = np.concatenate([np.diff(part.offsets) for part in parts])
        vectors = np.concatenate([part.arrays["vectors"] for part in parts])
        return Ragged({"vectors": vectors}, _offsets(sizes), total(part.cost for part in parts))

    def _passages(self, texts: Sequence[str]) -> Ragged:
        passages = self._encoder.passages(texts, self._tokens)
        with receiving(lambda texts: None):  # Its batches are passages, and not documents.
            encoded = self._encoder.encode_ragged([each for some in passages for each in some], "document")
        return Ragged(encoded.arrays, _offsets(np.array([len(some) for some in passages])), encoded.cost)

    @property
    def needs(self) -> Needs:
        """Where it can encode."""
        return self._encoder.needs

    @property
    def pinned(self) -> bool:
        """False if a push by the model's authors would change the weights of this name."""
        return self._encoder.pinned

    @property
    def in_folder(self) -> bool:
        """True if the documents' weights are in a folder."""
        return self._encoder.in_folder

    @property
    def libraries(self) -> tuple[str, ...]:
        """Packages that compute the vectors."""
        return self._encoder.libraries


def _offsets(sizes: Any) -> Any:
    return np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64))
