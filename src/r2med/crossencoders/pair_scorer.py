"""What scores pairs: a query and a document in, a score out with what it took, and every setting it depends on."""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple, Protocol

import numpy as np

from r2med.cost import Cost
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.data.dataset_cards import Instruction
from r2med.encoders.custom import guarded, python_object
from r2med.encoders.encoder import NotFiniteError, extras_installed
from r2med.setup import Setup

Pair = tuple[str, str]
"""A query and a document."""


class ScoredPair(NamedTuple):
    """A pair's score, and what it took."""

    score: float
    tokens: int = 0
    cut: bool = False
    """Whether the document or the query was cut at the model's limit."""
    seconds: float = 0.0
    """This pair's share of the time that was spent on those scored with it."""


def cost_of(scored: Sequence[ScoredPair]) -> Cost:
    """Return what scoring some pairs took, whether that was now or in an earlier run."""
    seconds = sum(pair.seconds for pair in scored)
    return Cost(
        seconds=seconds,
        encoder_seconds=seconds,
        texts=len(scored),
        tokens=sum(pair.tokens for pair in scored),
        cut=sum(pair.cut for pair in scored),
    )


class PairScorer(Protocol):
    """A model that knows the dataset's instruction words; its weights are loaded with the first pair."""

    def describe(self) -> dict[str, Any]:
        """Return all that a score depends on besides the two texts; it is part of a key."""

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one finite score per pair, in their order, with what each took.

        Raises NotFiniteError with the index of a pair whose score is not finite.
        """


class CustomScorer:
    """Scores with a user's object, `predict(pairs) -> scores`; its lengths and batches are its own affair."""

    METHOD = "predict"

    def __init__(self, card: RerankerCard, instruction: Instruction, setup: Setup) -> None:
        self._path = card.repository
        self._object = python_object(self._path, [self.METHOD])

    def describe(self) -> dict[str, Any]:
        """Return the object's name, the digest of its module's source, and its revision."""
        return {**self._object.describe(), "method": self.METHOD}

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in their order. Raises UserError if the object returned something else."""
        if not pairs:
            return []
        where = f"{self._path}.{self.METHOD}"
        started = time.perf_counter()
        returned = guarded(getattr(self._object.model, self.METHOD), list(pairs), where)
        scores = self._object.numbers(returned, len(pairs), self.METHOD, "number per pair")
        seconds = (time.perf_counter() - started) / len(pairs)
        with np.errstate(over="ignore"):  # a run's scores are in single precision
            odd = np.flatnonzero(~np.isfinite(scores.astype(np.float32)))
        if len(odd):
            raise NotFiniteError(int(odd[0]), f"from {where}")
        return [ScoredPair(float(score), seconds=seconds) for score in scores]


LOADERS = {
    "classifier": "r2med.crossencoders.transformer_scorer:TransformerScorer",
    "yes-no": "r2med.crossencoders.transformer_scorer:TransformerScorer",
    "custom": "r2med.crossencoders.pair_scorer:CustomScorer",
}
"""What a card's `loader` means: "module:Class", imported when it is used."""


def open_scorer(card: RerankerCard, instruction: Instruction, setup: Setup) -> PairScorer:
    """Return what scores by a card, for a dataset's instruction words; no weights are loaded yet.

    Raises MissingExtraError if what the card's loader needs is not installed.
    """
    module, _, name = LOADERS[card.loader].partition(":")
    with extras_installed(f"reranker {card.name}"):
        scorer: PairScorer = getattr(import_module(module), name)(card, instruction, setup)
    return scorer
