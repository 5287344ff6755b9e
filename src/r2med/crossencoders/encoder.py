"""Scoring pairs with a cross-encoder: sorted by length, in batches by token budget, on every device there is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from r2med.crossencoders.contracts import Pair, Scored
from r2med.crossencoders.copies import Classifier, LastToken, positions, scoring
from r2med.crossencoders.loading import load_model, load_tokenizer
from r2med.crossencoders.pairs import PairTokenizer
from r2med.crossencoders.parts import Parts, find_parts
from r2med.crossencoders.reranker_cards import RerankerCard
from r2med.data.dataset_cards import Instruction
from r2med.encoders import devices
from r2med.encoders.encoder import Vectors
from r2med.encoders.replicas import Replicas, cached_model
from r2med.encoders.tokenize import padded
from r2med.errors import UserError
from r2med.setup import Setup

UNLIMITED = 1 << 20
"""What tokenizers without a limit say is far above this."""
USUAL = 512


class Copies:
    """A tokenizer and a copy of its model on each device."""

    def __init__(self, parts: Parts, card: RerankerCard, options: Setup) -> None:
        folder = parts.model.fetch()
        adapter = parts.adapter.fetch() if parts.adapter else None
        self.tokenizer = load_tokenizer(folder, card, options)

        def load(device: str, dtype: str) -> Classifier | LastToken:
            return scoring(load_model(folder, adapter, card, options, dtype), self.tokenizer, card, device)

        self.replicas = Replicas(options, load)
        config = self.replicas.first.model.config
        self.has_types = int(getattr(config, "type_vocab_size", 0) or 0) > 1
        self.limit = self._checked_limit(card, positions(self.replicas.first.model))

    def _checked_limit(self, card: RerankerCard, there: int) -> int:
        if 0 < there < card.max_tokens:
            raise UserError(
                f"reranker {card.name}: its card allows {card.max_tokens} tokens, its weights have {there} positions"
            )
        own = int(min(self.tokenizer.model_max_length or UNLIMITED, UNLIMITED))
        told = [limit for limit in (own, there) if 0 < limit < UNLIMITED]
        return card.max_tokens or min(told, default=USUAL)


class CrossEncoder:
    """Scores by a card; weights are loaded with the first pair, so that stored scores need none."""

    def __init__(self, card: RerankerCard, instruction: Instruction, options: Setup) -> None:
        devices.check_torch(options, f"reranker {card.name}")
        self._card, self._instruction, self._options = card, instruction, options
        self._backend = devices.describe_backend(options)
        self._found: Parts | None = None

    def describe(self) -> dict[str, Any]:
        """Return what a score depends on; the card's name is no part of it."""
        card = self._card
        return {
            "loader": card.loader,
            **self._parts().describe(),
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

    def score(self, pairs: Sequence[Pair]) -> list[Scored]:
        """Return one score per pair, in their order."""
        if not pairs:
            return []
        copies = self._copies()
        started = time.perf_counter()
        tokenizer = PairTokenizer(copies.tokenizer, self._card, self._instruction, copies.limit, copies.has_types)
        tokens = tokenizer(pairs)

        def rows(model: Classifier | LastToken, batch: Sequence[int]) -> Vectors:
            ids = [tokens.ids[i] for i in batch]
            types = padded([tokens.types[i] for i in batch], 0) if tokens.types else None
            return model(padded(ids, tokenizer.pad), np.asarray([len(row) for row in ids], dtype=np.int64), types)

        lengths = tokens.lengths()
        scores = copies.replicas.run(lengths, rows, tokens.truncated).vectors[:, 0]
        share = (time.perf_counter() - started) / sum(lengths)
        return [
            Scored(float(score), length, cut, share * length)
            for score, length, cut in zip(scores, lengths, tokens.truncated, strict=True)
        ]

    def _parts(self) -> Parts:
        if self._found is None:
            self._found = find_parts(self._card, self._options)
        return self._found

    def _copies(self) -> Copies:
        card, options, parts = self._card, self._options, self._parts()
        key = ("cross", parts, card.loader, card.logit, card.max_tokens)
        return cached_model(key, options, lambda: Copies(parts, card, options))
