"""A user's own object as a reranker: `predict(pairs) -> scores`, checked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.crossencoders.pair_scorer import Pair, ScoredPair
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.data.dataset_cards import Instruction
from r2med.encoders.custom import guarded, python_object
from r2med.encoders.encoder import NotFiniteError
from r2med.errors import UserError
from r2med.setup import Setup

METHOD = "predict"


class CustomScorer:
    """Scores with a user's object; its lengths and batches are its own affair."""

    def __init__(self, card: RerankerCard, instruction: Instruction, setup: Setup) -> None:
        self._path = card.repository
        self._object = python_object(self._path, [METHOD])

    def describe(self) -> dict[str, Any]:
        """Return the object's name, the digest of its module's source, and its revision."""
        return {**self._object.describe(), "method": METHOD}

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in their order. Raises UserError if the object returned something else."""
        if not pairs:
            return []
        where = f"{self._path}.{METHOD}"
        started = time.perf_counter()
        returned = guarded(getattr(self._object.model, METHOD), list(pairs), where)
        if hasattr(returned, "detach"):
            returned = returned.detach().float().cpu().numpy()
        seconds = (time.perf_counter() - started) / len(pairs)
        scores = _numbers(returned, len(pairs), where)
        with np.errstate(over="ignore"):  # a run's scores are in single precision
            odd = np.flatnonzero(~np.isfinite(scores.astype(np.float32)))
        if len(odd):
            raise NotFiniteError(int(odd[0]), f"from {where}")
        return [ScoredPair(float(score), seconds=seconds) for score in scores]


def _numbers(returned: Any, count: int, where: str) -> Any:
    """Return what a user's method returned as one number per pair."""
    if returned is None:
        raise UserError(f"{where} returned nothing: it must return one number per pair")
    try:
        scores = np.asarray(returned, dtype=np.float64)
    except (TypeError, ValueError):
        raise UserError(f"{where} must return an array of numbers, not {type(returned).__name__}") from None
    if scores.ndim != 1:
        raise UserError(f"{where} must return one number per pair: its array has the shape {scores.shape}")
    if len(scores) != count:
        raise UserError(f"{where} returned {len(scores):,} scores for {count:,} pairs")
    return scores
