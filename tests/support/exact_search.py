"""Compare exact dense search on all devices with brute force in float64."""

import numpy as np
import pytest

from r2med.systems.retrieve.dense.exact_search import search_exact

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
    q, d = queries.astype(np.float64), documents.astype(np.float64)
    scores = q @ d.T
    if cosine:
        norms = np.outer(np.linalg.norm(q, axis=1), np.linalg.norm(d, axis=1))
        scores = np.divide(scores, norms, out=np.zeros_like(scores), where=norms > 0)
    scores = scores.astype(np.float32)
    orders = [np.lexsort((-ranks, -line))[:k] for line in scores]
    return [(order.tolist(), line[order]) for order, line in zip(orders, scores, strict=True)]


def check_search(queries, documents, k, *, cosine=False, blocks=None, seed=0, **settings):
    """Compare all backends with brute force: equal rankings, and scores equal up to float32 precision."""
    ranks = np.random.default_rng(seed).permutation(len(documents)).astype(np.int32)
    expected = brute_force(queries, documents, k, ranks, cosine)
    lengths = [np.linalg.norm(side.astype(np.float64), axis=1).max(initial=0) for side in (queries, documents)]
    largest = 1 if cosine else lengths[0] * lengths[1]
    for device in DEVICES:
        given_blocks = blocks if blocks is not None else [(0, documents)]
        found = search_exact(queries, given_blocks, k, ranks, cosine=cosine, device=device, **settings)
        assert len(found) == len(queries)
        for (rows, scores), (true_rows, true_scores) in zip(ranking(found, ranks), expected, strict=True):
            assert rows == true_rows, device
            assert scores.dtype == np.float32
            np.testing.assert_allclose(scores, true_scores, rtol=0, atol=1e-6 * largest)


def split(documents, size):
    return [(start, documents[start : start + size]) for start in range(0, len(documents), size)]


def normal(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
