"""What is asked of a search, and the arrays that it is made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from r2med.encoders.encoder import Vectors

Rows = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Exact = npt.NDArray[np.float64]
Block = tuple[int, npt.NDArray[Any]]
"""The row of the first document, and vectors in float32 or float16."""
Step = Callable[[], list[tuple[Rows, Vectors]]]
"""What is to be done once the scores of some documents are there; it returns what is found after the last ones."""


class Asked(NamedTuple):
    """The k best documents for each of some queries, of equal ones those of higher rank, within so much memory."""

    queries: Vectors
    k: int
    ranks: npt.NDArray[np.int32]
    cosine: bool
    memory: int


def check_scores(rows: Rows, scores: Vectors) -> None:
    """Raise ValueError if one of the scores of some rows, which may be the same in every line, is not finite."""
    if not (finite := np.isfinite(scores)).all():
        row = np.broadcast_to(rows, scores.shape)[~finite][0]
        raise ValueError(f"row {row}: a score exceeds float32, or a sum on the way to it")
