"""The inverted index of learned term weights scores as a plain matrix product does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from r2med.data import Corpus
from r2med.foundation.core.cost import Cost
from r2med.foundation.store import Store
from r2med.models.encoders.encoder import Encoder, Role
from r2med.models.encoders.ragged import Ragged, joined
from r2med.systems.retrieve.late import term_index
from r2med.systems.retrieve.late.term_index import TermIndex
from r2med.systems.retrieve.vectors.embeddings import embed_corpus, embed_texts


class Scripted(Encoder):
    """A sparse encoder whose weights are given; it says how often it was asked."""

    shards_in = "term-weights"
    shard_documents = 7

    def __init__(self, weights: dict[str, dict[int, float]]) -> None:
        self.weights, self.asked = weights, 0

    def key(self, role: Role) -> dict[str, Any]:
        return {"scripted": sorted(self.weights), "role": role}

    def encode(self, texts: Any, role: Role) -> Ragged:
        self.asked += 1
        rows = [self.weights[text] for text in texts]
        parts = [
            {"terms": np.array(list(row), np.int32), "weights": np.array(list(row.values()), np.float32)}
            for row in rows
        ]
        return joined(parts, Cost(texts=len(texts)))


@pytest.mark.parametrize("seed", range(5))
def test_the_inverted_index_scores_the_products_of_weights(
    seed: int, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_index, "SHARDS_OF_A_SEGMENT", 2)
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 4, (45, 30)) * (rng.random((45, 30)) < 0.2)
    matrix[5] = 0
    matrix[9] = matrix[8]
    names = [f"t{number}" for number in range(45)]
    rows_of = zip(names, matrix, strict=True)
    encoder = Scripted({name: {int(term): float(row[term]) for term in np.flatnonzero(row)} for name, row in rows_of})
    corpus = Corpus.of((name, name) for name in names[:40])
    shards = embed_corpus(corpus, encoder, store).shards
    assert encoder.asked == 6
    assert len(embed_corpus(corpus, encoder, store).shards) == 6 and encoder.asked == 6
    index, ranks = TermIndex.of(shards, store), corpus.id_ranks()
    hits = index.search(embed_texts(names[40:], "query", encoder, store), 8, ranks)
    products = matrix[40:] @ matrix[:40].T
    for (rows, scores), exact in zip(hits, products, strict=True):
        order = [row for row in np.lexsort((-ranks, -exact)) if exact[row] > 0][:8]
        found = np.lexsort((-ranks[rows], -scores))
        assert rows[found].tolist() == order
        assert scores[found].tolist() == exact[order].tolist()
