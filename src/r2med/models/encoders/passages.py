"""Encode a long document as several passages, each with a vector of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.foundation.core.cost import total
from r2med.models.encoders.encoder import Encoder, batch_receiver, receiving
from r2med.models.encoders.ragged import Ragged

DOCUMENTS_AT_ONCE = 256
"""Number of documents whose passages are encoded together, between two reports of progress."""


def encode_passages(encoder: Encoder, documents: Sequence[str], tokens: int) -> Ragged:
    """Return a vector for each passage of the documents. A passage has at most `tokens` tokens; none overlap."""
    receiver, parts, sizes = batch_receiver(), list[Ragged](), list[int]()
    for start in range(0, len(documents), DOCUMENTS_AT_ONCE):
        passages = encoder.passages(documents[start : start + DOCUMENTS_AT_ONCE], tokens)
        sizes += map(len, passages)
        with receiving(lambda texts: None):  # Its batches are passages, and not documents.
            parts.append(encoder.encode([text for document in passages for text in document], "document"))
        if receiver is not None:
            receiver(len(passages))
    vectors = np.concatenate([part.arrays["vectors"] for part in parts])
    offsets = np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64))
    return Ragged({"vectors": vectors}, offsets, total(part.cost for part in parts))
