"""Check that an artefact of a pack has the files, facts and arrays of its kind, so that nothing can fail on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from r2med.data.runs.run_checks import ranking_fault
from r2med.foundation.core.cost import Cost
from r2med.foundation.store.holdings import DOCUMENT_VECTORS

_FILES = {
    "run": {"rows.npy", "scores.npy"},
    "recall": set[str](),
}
"""Kind -> files that an artefact must have. Others are vectors: `vectors.npy`, or the arrays that they name."""


def is_artefact(kind: str, meta: Mapping[str, Any], files: Collection[str]) -> bool:
    """Return True if files and facts are those of this kind."""
    try:
        if kind == "recall":
            numbers = [*meta["recall"].values(), meta["measured"], meta["sample"]]
            return not files and all(map(_is_number, numbers))
        costs = [meta["cost"], *([meta["prepared"]] if kind == "run" else [])]
        needed = _FILES.get(kind) or {f"{name}.npy" for name in meta.get("arrays", ["vectors"])}
        if meta.get("sources"):
            return False  # vectors of a pack are whole
        starts = isinstance(meta["start"], int) and meta["start"] >= 0 if kind in DOCUMENT_VECTORS else True
        zeros = isinstance(meta.get("zeros", 0), int)
        return all(map(_is_cost, costs)) and needed <= {*files} and starts and zeros
    except (KeyError, TypeError, AttributeError, ValueError):
        return False


def _is_cost(values: Mapping[str, Any]) -> bool:
    facts = vars(Cost.from_dict(values))
    return all(map(_is_number, [*facts.pop("latencies"), *facts.values()]))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value) and value >= 0


@dataclass(frozen=True)
class PackedArray:
    """An array of a pack: its header, and a way to read its values."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    order: Literal["C", "F"]
    blocks: Callable[[], Iterable[npt.NDArray[Any]]]
    """Returns the values in flat blocks that fit into memory."""

    def whole(self) -> npt.NDArray[Any]:
        """Return the array."""
        return np.concatenate([np.empty(0, self.dtype), *self.blocks()]).reshape(self.shape, order=self.order)

    @property
    def is_finite(self) -> bool:
        """True if the array has no NaN and no infinite value."""
        return self.dtype.kind in "iu" or all(bool(np.isfinite(block).all()) for block in self.blocks())


def arrays_fault(kind: str, arrays: Mapping[str, PackedArray]) -> str:
    """Return what is wrong with the arrays of an artefact; empty if nothing is."""
    if odd := next((name for name, array in arrays.items() if array.dtype.kind not in "iuf"), ""):
        return f"{odd} has values of the type {arrays[odd].dtype}"
    if kind == "run":
        rows, scores = arrays["rows.npy"], arrays["scores.npy"]
        if rows.dtype != np.int32 or scores.dtype != np.float32:
            return f"its arrays are {rows.dtype} and {scores.dtype}"
        return ranking_fault(rows.whole(), scores.whole())
    if "offsets.npy" in arrays:
        fault = _ragged_fault(arrays)
    elif "vectors.npy" in arrays:
        fault = _vectors_fault(arrays["vectors.npy"])
    else:
        fault = ""
    odd = next((name for name, each in arrays.items() if not fault and not each.is_finite), "")
    return f"{odd} has NaN or infinite values" if odd else fault


def _vectors_fault(vectors: PackedArray) -> str:
    sound = vectors.dtype == np.float32 and len(vectors.shape) == 2 and vectors.shape[1] > 0
    return "" if sound else f"its vectors are {vectors.dtype} of shape {vectors.shape}"


def _ragged_fault(arrays: Mapping[str, PackedArray]) -> str:
    """Return what is wrong with rows of texts: offsets must grow from 0 to the length of every other array."""
    offsets = arrays["offsets.npy"]
    if offsets.dtype.kind != "i" or len(offsets.shape) != 1 or not offsets.shape[0]:
        return f"its offsets are {offsets.dtype} of shape {offsets.shape}"
    bounds = offsets.whole()
    if bounds[0] != 0 or (np.diff(bounds) < 0).any():
        return "its offsets do not grow from 0"
    for name, array in arrays.items():
        if name != "offsets.npy" and (not array.shape or array.shape[0] != bounds[-1]):
            return f"{name} does not have the rows that its offsets state"
    return ""
