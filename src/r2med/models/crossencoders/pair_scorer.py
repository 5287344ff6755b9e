"""Pair scorers: score a query and a document, with the cost and every setting that the score depends on.

torch is imported with the weights, because the key of cached scores must not take seconds.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from r2med.data.dataset_cards import Instruction
from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError, check_installed
from r2med.foundation.engine.work import WorkNeeds
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.setup import Setup
from r2med.models.crossencoders.pairs import Pair, PairTokenizer
from r2med.models.crossencoders.reranker_cards import RerankerCard
from r2med.models.encoders import devices, weights
from r2med.models.encoders.encoder import NotFiniteError, Vectors, modules_of_loader
from r2med.models.encoders.replicas import Replicas, cached_model
from r2med.models.encoders.tokenize import padded
from r2med.models.encoders.user_objects import UserObjects, guarded
from r2med.models.encoders.weights import Weights

if TYPE_CHECKING:
    from r2med.models.crossencoders.pair_model import PairModel

UNLIMITED_TOKENS = 1 << 20
"""Limit in tokens. Tokenizers without a limit report a far larger number."""
DEFAULT_MAX_TOKENS = 512

API_SCORER = "r2med.models.crossencoders.api_scorer"
"""Module of the scorer of rerank APIs. It is imported when it is used."""


class ScoredPair(NamedTuple):
    """The score of a pair, and its cost."""

    score: float
    tokens: int = 0
    cut: bool = False
    """True if the document or the query was cut at the model's limit."""
    seconds: float = 0.0
    """This pair's share of the time for the pairs that were scored together."""
    searches: float = 0.0
    """This pair's share of the searches that an API billed."""


def cost_of(scored: Sequence[ScoredPair], card: RerankerCard | None = None) -> Cost:
    """Return the cost of scoring some pairs, now or in an earlier run, at the prices of a card."""
    seconds = sum(pair.seconds for pair in scored)
    tokens = sum(pair.tokens for pair in scored)
    return Cost(
        seconds=seconds,
        encoder_seconds=seconds,
        texts=len(scored),
        tokens=tokens,
        cut=sum(pair.cut for pair in scored),
        dollars=card.dollars(tokens, sum(pair.searches for pair in scored)) if card else 0.0,
        unpriced=0 if card is None or card.is_priced else len(scored),
    )


class PairScorer(Protocol):
    """A model that knows the instruction of a dataset. Its weights are loaded with the first pair."""

    def key(self) -> dict[str, Any]:
        """Return everything that a score depends on, except the two texts."""

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one finite score per pair, in their order, with the cost of each.

        Raises NotFiniteError with the index of a pair whose score is not finite.
        """


def open_scorer(card: RerankerCard, instruction: Instruction, runtime: Runtime) -> PairScorer:
    """Return the scorer of a card for a dataset's instruction. No weights are loaded yet.

    Raises MissingExtraError if a package that the card's loader needs is not installed.
    """
    check_installed(f"reranker {card.name}", modules_of_reranker(card, runtime.setup))
    if card.is_api:
        scorer: PairScorer = import_module(API_SCORER).ApiScorer(card, instruction, runtime)
        return scorer
    return (CustomScorer if card.loader == "custom" else TransformerScorer)(card, instruction, runtime)


def modules_of_reranker(card: RerankerCard, setup: Setup) -> tuple[str, ...]:
    """Return the optional modules that the loader of a card needs in this process."""
    return () if card.is_api or card.loader == "custom" else modules_of_loader("transformers", setup)


class CustomScorer:
    """Scorer that uses a user's object with `predict(pairs) -> scores`.

    The object itself handles lengths and batches.
    """

    METHOD = "predict"

    def __init__(self, card: RerankerCard, instruction: Instruction, runtime: Runtime) -> None:
        self._opened_with = (card, instruction, runtime)
        self._path = card.repository
        self._object = UserObjects.of(runtime).get(self._path)
        self._object.check_method(self.METHOD)

    def __reduce__(self) -> tuple[type[CustomScorer], tuple[RerankerCard, Instruction, Runtime]]:
        return type(self), self._opened_with

    @property
    def needs(self) -> WorkNeeds:
        """Where it can be opened."""
        return self._object.needs

    def key(self) -> dict[str, Any]:
        """Return the object's name, the digest of its module's source, and its revision."""
        return {**self._object.key(), "method": self.METHOD}

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in their order. Raises UserError if the object returned something else."""
        if not pairs:
            return []
        where = f"{self._path}.{self.METHOD}"
        started = time.perf_counter()
        returned = guarded(getattr(self._object.model, self.METHOD), list(pairs), where)
        scores = self._object.numbers(returned, len(pairs), self.METHOD, "number per pair")
        seconds = (time.perf_counter() - started) / len(pairs)
        with np.errstate(over="ignore"):  # The scores of a run are in single precision.
            odd = np.flatnonzero(~np.isfinite(scores.astype(np.float32)))
        if len(odd):
            raise NotFiniteError(int(odd[0]), f"from {where}")
        return [ScoredPair(float(score), seconds=seconds) for score in scores]


class LoadedScorer:
    """A tokenizer, and a copy of its model on each device."""

    def __init__(self, own: Weights, card: RerankerCard, setup: Setup) -> None:
        from r2med.models.crossencoders import pair_model

        folder, adapter = own.fetch_both()
        self.tokenizer = pair_model.load_tokenizer(folder, card, setup)

        def load(device: str, dtype: str) -> PairModel:
            model = pair_model.load_model(folder, adapter, card, setup, dtype)
            return pair_model.with_head(model, self.tokenizer, card, device)

        self.replicas = Replicas(setup, load, merged=bool(card.base))
        model = self.replicas.first.model
        self.has_types = int(getattr(model.config, "type_vocab_size", 0) or 0) > 1
        self.limit = self._checked_limit(card, pair_model.positions(model))

    def _checked_limit(self, card: RerankerCard, positions: int) -> int:
        if 0 < positions < card.max_tokens:
            raise UserError(
                f"reranker {card.name}: its card allows {card.max_tokens} tokens, "
                f"its weights have {positions} positions"
            )
        own = int(min(self.tokenizer.model_max_length or UNLIMITED_TOKENS, UNLIMITED_TOKENS))
        limits = [limit for limit in (own, positions) if 0 < limit < UNLIMITED_TOKENS]
        return card.max_tokens or min(limits, default=DEFAULT_MAX_TOKENS)


class TransformerScorer:
    """Scorer that uses the weights of a card. They are loaded with the first pair, so stored scores need no weights."""

    needs = WorkNeeds(gpu=True)

    def __init__(self, card: RerankerCard, instruction: Instruction, runtime: Runtime) -> None:
        devices.check_torch(runtime.setup, f"reranker {card.name}")
        self._card = card
        self._instruction = instruction
        self._runtime = runtime
        self._backend = devices.backend_key(runtime, merged=bool(card.base))

    def __reduce__(self) -> tuple[type[TransformerScorer], tuple[RerankerCard, Instruction, Runtime]]:
        return type(self), (self._card, self._instruction, self._runtime)

    @property
    def pinned(self) -> bool:
        """False if a push by the model's authors would change the weights of this name."""
        return self._weights.pinned

    def key(self) -> dict[str, Any]:
        """Return everything that a score depends on. The card's name is not part of it."""
        card, own = self._card, self._weights
        base = own.base_key()
        return {
            "loader": card.loader,
            "model": own.repository or own.name,
            "revision": own.revision,
            **base,
            "logit": card.logit or "by the number of labels",
            "query_template": "{query}".join(card.query_parts(self._instruction)),
            "document_template": card.document,
            "join": card.join,
            "before": card.before,
            "after": card.after,
            "max_tokens": card.max_tokens or "the model's own",
            "cut_query": card.cut_query,
            **self._backend,
        }

    def score(self, pairs: Sequence[Pair]) -> list[ScoredPair]:
        """Return one score per pair, in their order."""
        if not pairs:
            return []
        loaded = self._loaded()
        started = time.perf_counter()
        tokenizer = PairTokenizer(loaded.tokenizer, self._card, self._instruction, loaded.limit, loaded.has_types)
        tokens = tokenizer(pairs)

        def rows(model: PairModel, batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = padded([tokens.types[i] for i in batch], 0) if tokens.types else None
            return model(padded(ids, tokenizer.pad), np.asarray([len(row) for row in ids], dtype=np.int64), types)

        lengths = tokens.lengths()
        scores = loaded.replicas.run(lengths, rows, tokens.cut).vectors[:, 0]
        share = (time.perf_counter() - started) / sum(lengths)
        return [
            ScoredPair(float(score), length, cut, share * length)
            for score, length, cut in zip(scores, lengths, tokens.cut, strict=True)
        ]

    @cached_property
    def _weights(self) -> Weights:
        return weights.find_adapted(self._card, self._runtime.setup, self._runtime.store)

    def _loaded(self) -> LoadedScorer:
        card, runtime, own = self._card, self._runtime, self._weights
        key = ("cross", own, card.loader, card.logit, card.max_tokens)
        return cached_model(key, runtime, lambda: LoadedScorer(own, card, runtime.setup))
