"""Check the arrays of a stored ranking. A file with the right hash may still come from somebody else."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

NO_DOCUMENT = -1


def ranking_fault(
    rows: npt.NDArray[Any], scores: npt.NDArray[Any], queries: int | None = None, documents: int | None = None
) -> str:
    """Return what is wrong with the arrays of a ranking; empty if nothing is.

    `queries` is the number of queries, and `documents` that of the corpus, where they are known.
    """
    if rows.dtype.kind != "i" or scores.dtype.kind != "f" or rows.ndim != 2 or rows.shape != scores.shape:
        return f"its arrays are {rows.dtype} {rows.shape} and {scores.dtype} {scores.shape}"
    if queries is not None and len(rows) != queries:
        return f"it has {len(rows):,} queries instead of {queries:,}"
    if rows.size and (int(rows.min()) < NO_DOCUMENT or (documents is not None and int(rows.max()) >= documents)):
        return "it names documents that the corpus does not have"
    found = rows != NO_DOCUMENT
    if (found[:, 1:] & ~found[:, :-1]).any():
        return "it has a gap between two documents"
    if not np.isfinite(scores).all():
        return "it has a score that is not a finite number"
    ordered = np.sort(rows, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] != NO_DOCUMENT)).any():
        return "it names a document twice for a query"
    return ""
