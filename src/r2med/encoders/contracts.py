"""What an encoder is: texts in, vectors out, and every setting they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

Role = Literal["query", "document", "generated"]
"""What a text is to the model: prefix, length limit and tower may differ. `generated` is what an LLM wrote."""

Vectors = npt.NDArray[np.float32]


class Encoder(Protocol):
    """A model that is loaded and knows the dataset's instruction words."""

    def describe(self, role: Role) -> dict[str, Any]:
        """Return all that the vectors of a role depend on: model, revision, prefix, lengths, pooling, dtype, …

        It is part of a key: a change of the query's prefix must not show in the description of documents.
        """

    def encode(self, texts: Sequence[str], role: Role) -> Vectors:
        """Return one finite float32 row per text, in their order."""

    def usage(self) -> dict[str, float]:
        """Return what was used so far: `texts`, `tokens`, `truncated` (texts cut at the limit), `cost_usd`, …"""
