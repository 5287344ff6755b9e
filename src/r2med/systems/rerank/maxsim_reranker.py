"""Rerank candidates by late interaction: the MaxSim of a query's and a document's token vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np

from r2med.data.dataset import Dataset
from r2med.foundation.core.errors import UserError
from r2med.foundation.core.needs import Needs, Size
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import argument
from r2med.models.crossencoders.pair_scorer import ScoredPair
from r2med.models.crossencoders.pairs import Pair
from r2med.models.encoders.encoder import Role, modules_of_loader, open_encoder
from r2med.models.encoders.model_cards import MODELS, resolve_card, safe_name
from r2med.models.encoders.model_estimates import model_needs
from r2med.systems.rerank.cross import PairStage
from r2med.systems.retrieve.exact.exact_scores import maxsim


class MaxSim(PairStage, kind="rerank"):
    """Score each candidate by the token vectors of a multi-vector model: maxsim(MODEL)."""

    name: str = "maxsim"
    model: str = argument("multi-vector model: a card's name, hf:ORG/NAME or path:DIR", min_length=1)

    def needs(self, size: Size, runtime: Runtime) -> list[Needs]:
        """Return how many pairs would be scored and how much would be downloaded."""
        pairs = size.queries * min(self.depth, size.documents)
        tokens = pairs * size.document_tokens
        model = model_needs(str(self), self.model, MODELS, resolve_card, tokens, runtime.setup)
        return [replace(model, pairs=pairs)]

    def memo_name(self, runtime: Runtime) -> str:
        """Return the name of the file of scores, apart from that of a cross-encoder with the same name."""
        return safe_name(f"maxsim-{self.model}")

    def modules(self, runtime: Runtime) -> tuple[str, ...]:
        """Return the modules that load the model."""
        return modules_of_loader("multi-vector", runtime.setup)

    def open_scorer(self, dataset: Dataset, runtime: Runtime) -> MaxSimScorer:
        """Return the scorer of the model."""
        return MaxSimScorer(self.model, dataset, runtime)


class MaxSimScorer:
    """Scores pairs by a multi-vector model; each text of a block is encoded once."""

    needs = WorkNeeds(gpu=True)

    def __init__(self, model: str, dataset: Dataset, runtime: Runtime) -> None:
        """Raise UserError if the model has one vector per text."""
        card = resolve_card(model)
        if card.loader != "multi-vector":
            raise UserError(f"maxsim({model}): a model with a vector for each token is needed, as reason-moderncolbert")
        self._encoder = open_encoder(card, dataset.instruction, runtime)
        self.pinned = self._encoder.pinned

    def key(self) -> dict[str, Any]:
        """Return everything that a score depends on, except the two texts."""
        return {"query_tokens": self._encoder.key("query"), "document_tokens": self._encoder.key("document")}

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in their order."""
        if not pairs:
            return []
        started = perf_counter()
        queries, documents = zip(*pairs, strict=True)
        sides = zip(self._token_vectors(queries, "query"), self._token_vectors(documents, "document"), strict=True)
        scores = [maxsim(query, document) for query, document in sides]
        seconds = (perf_counter() - started) / len(pairs)
        return [ScoredPair(score, seconds=seconds) for score in scores]

    def _token_vectors(self, texts: Sequence[str], role: Role) -> list[np.ndarray[Any, Any]]:
        """Return the vectors of each text. A text that occurs several times is encoded once."""
        number_of = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        ragged = self._encoder.encode(list(number_of), role)
        return [ragged.rows("vectors", number_of[text]) for text in texts]
