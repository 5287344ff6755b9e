"""What every encoder's output must be: one finite float32 row per text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from r2med.encoders.contracts import Vectors
from r2med.errors import UserError


class NotFiniteError(UserError):
    """A text whose embedding has NaN or infinite entries; the caller knows which document that is."""

    def __init__(self, index: int, hint: str = "") -> None:
        self.index = index
        """The position of the text among those that were to be encoded."""
        self.hint = hint or "a half-precision overflow, if --dtype float32 mends it"
        super().__init__(f"the embedding of text {index + 1} has NaN or infinite entries ({self.hint})")


def check_finite(rows: Vectors, positions: Sequence[int] | None = None, hint: str = "") -> None:
    """Raise for the first row with an entry that is not finite; positions say which text each row belongs to."""
    # The sum of a row is NaN or infinite if an entry is; only then are the entries themselves looked at.
    with np.errstate(over="ignore", invalid="ignore"):
        suspects = np.flatnonzero(~np.isfinite(rows.sum(axis=1)))
    for row in map(int, suspects):
        if not np.isfinite(rows[row]).all():
            raise NotFiniteError(row if positions is None else positions[row], hint)


def normalised(rows: Vectors) -> Vectors:
    """Return rows of length 1; a row of zeros stays as it is."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    out: Vectors = rows / np.maximum(norms, np.float32(1e-12))
    return out
