"""Compare exact search on all devices with brute force in float64."""

import numpy as np
import pytest

from r2med.foundation.core.cost import Cost
from r2med.models.encoders.ragged import Ragged, joined
from r2med.systems.retrieve.exact.exact_search import search_exact

torch = pytest.importorskip("torch")
DEVICES = ["cpu", "gpu"] + ["cuda"] * torch.cuda.is_available()
"""Devices to test. "gpu" runs the code for GPUs on the CPU, see tests/systems/retrieve/conftest.py."""


def ranking(found, ranks):
    """Return rows and scores in the order of Run.ranked."""
    lines = []
    for rows, scores in found:
        order = np.lexsort((-ranks[rows], -scores))
        lines.append((rows[order].tolist(), scores[order]))
    return lines


def brute_force(queries, documents, k, ranks, cosine=False):
    """Return the k best by float64 scores, each product added up alone, rounded once to float32."""
    rankings = []
    for query in queries:
        if isinstance(documents, list) or query.ndim == 2:
            texts, asked = map(np.atleast_2d, documents), np.atleast_2d(query)
            lines = [_products(asked, text, cosine).max(1) if len(text) else [0] for text in texts]
            scores = np.array([np.sum(line) for line in lines])
        else:
            scores = _products(query[None], documents, cosine)[0]
        scores = scores.astype(np.float32)
        order = np.lexsort((-ranks, -scores))[:k]
        rankings.append((order.tolist(), scores[order]))
    return rankings


def _products(query, document, cosine):
    query, document = query.astype(np.float64), document.astype(np.float64)
    products = np.einsum("ik,jk->ij", query, document)
    if not cosine:
        return products
    lengths, own = (np.sqrt(np.einsum("ij,ij->i", side, side)) for side in (document, query))
    norms = lengths * own[:, None]
    return np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)


def check_search(queries, documents, k, *, cosine=False, blocks=None, seed=0, **settings):
    """Check that rankings and scores of all devices are those of brute force, bit by bit."""
    ranks = np.random.default_rng(seed).permutation(len(documents)).astype(np.int32)
    expected = brute_force(queries, documents, k, ranks, cosine)
    asked = ragged(queries) if isinstance(queries, list) else queries
    for device in DEVICES:
        given_blocks = blocks if blocks is not None else split(documents, max(1, len(documents)))
        found = search_exact(asked, given_blocks, k, ranks, cosine=cosine, device=device, **settings)
        assert len(found) == len(queries)
        for (rows, scores), (true_rows, true_scores) in zip(ranking(found, ranks), expected, strict=True):
            assert rows == true_rows, device
            assert scores.dtype == np.float32
            np.testing.assert_array_equal(scores, true_scores)


def ragged(texts) -> Ragged:
    return joined([{"vectors": text} for text in texts], Cost())


def split(documents, size):
    parts = [(start, documents[start : start + size]) for start in range(0, len(documents), size)]
    return [(start, ragged(part)) for start, part in parts] if isinstance(documents, list) else parts


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
