"""A user's own object as a reranker: `predict(pairs) -> scores`, checked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.crossencoders.contracts import Pair, Scored
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.encoders.custom import guarded, load, source_digest
from r2med.encoders.encoder import NotFiniteError
from r2med.errors import UserError

METHOD = "predict"


class CustomScorer:
    """Scores with a user's object; its lengths and batches are its own affair."""

    def __init__(self, card: RerankerCard) -> None:
        self._place = card.repository
        self._model = load(self._place, [METHOD])
        self._source = source_digest(self._place)

    def describe(self) -> dict[str, Any]:
        """Return the object's name, and a digest of its module's source: what it imports in turn is not in it."""
        return {"loader": "custom", "model": self._place, "source": self._source, "method": METHOD}

    def score(self, pairs: Sequence[Pair]) -> list[Scored]:
        """Return one score per pair, in their order."""
        if not pairs:
            return []
        where = f"{self._place}.{METHOD}"
        started = time.perf_counter()
        found = guarded(getattr(self._model, METHOD), list(pairs), where)
        if hasattr(found, "detach"):
            found = found.detach().float().cpu().numpy()
        seconds = (time.perf_counter() - started) / len(pairs)
        if found is None:
            raise UserError(f"{where} returned nothing: it must return one number per pair")
        try:
            scores = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError):
            raise UserError(f"{where} must return an array of numbers, not {type(found).__name__}") from None
        if scores.ndim != 1:
            raise UserError(f"{where} must return one number per pair: its array has the shape {scores.shape}")
        if len(scores) != len(pairs):
            raise UserError(f"{where} returned {len(scores):,} scores for {len(pairs):,} pairs")
        with np.errstate(over="ignore"):  # a run's scores are in single precision
            odd = np.flatnonzero(~np.isfinite(scores.astype(np.float32)))
        if len(odd):
            raise NotFiniteError(int(odd[0]), f"from {where}")
        return [Scored(float(score), seconds=seconds) for score in scores]
