"""MaxSim is exact: rankings and scores are those of float64, for ties, long vectors and any memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from r2med.foundation.core.cost import Cost
from r2med.models.encoders.ragged import joined
from r2med.systems.retrieve.late import maxsim
from r2med.systems.retrieve.late.maxsim import TokenIndex, search_maxsim


def tokens(rng: np.random.Generator, dimension: int = 16, most: int = 9, length: float = 1.0) -> Any:
    rows = rng.standard_normal((rng.integers(1, most), dimension))
    return length * rows / np.linalg.norm(rows, axis=1, keepdims=True)


def index_of(documents: list[Any], shard: int = 20) -> TokenIndex:
    parts = [{"vectors": document.astype(np.float16)} for document in documents]
    return TokenIndex([(at, joined(parts[at : at + shard], Cost())) for at in range(0, len(parts), shard)])


def plain(query: Any, documents: list[Any]) -> list[float]:
    """Return the scores, token by token."""
    halves = [document.astype(np.float16).astype(np.float64) for document in documents]
    single = query.astype(np.float32).astype(np.float64)
    return [sum(max(float(mine @ theirs) for theirs in half) for mine in single) for half in halves]


@pytest.mark.parametrize("gpu", [None, "cpu"])  # torch's functions, which a GPU runs, run on a CPU as well
@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.parametrize("length", [1.0, 300.0])
def test_rankings_are_those_of_a_plain_computation(
    memory: int, length: float, gpu: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"TILE_BYTES": 4000, "GPU_TILE_BYTES": 4000, "QUERY_TOKENS": 20, "GPU_QUERY_TOKENS": 20}
    for name, value in {**small, "DOCUMENTS_AT_ONCE": 3}.items():
        monkeypatch.setattr(maxsim, name, value)
    rng = np.random.default_rng(1)
    documents = [tokens(rng, length=length * rng.uniform(0.5, 1)) for _ in range(90)]
    documents[40], documents[80] = documents[3], documents[3]  # copies tie
    documents[7] = np.zeros((1, 16))
    queries = [tokens(rng) for _ in range(12)]
    ranks = rng.permutation(90).astype(np.int32)
    hits = search_maxsim(queries, index_of(documents), 10, ranks, memory=memory, gpu=gpu)
    for query, (rows, scores) in zip(queries, hits, strict=True):
        expected = np.asarray(plain(query, documents), np.float32)
        order = np.lexsort((-ranks, -expected))[:10]
        found = np.lexsort((-ranks[rows], -scores))
        assert rows[found].tolist() == order.tolist()
        np.testing.assert_allclose(scores[found], expected[order], rtol=1e-6, atol=1e-6 * length)


def test_torch_scores_what_numpy_scores() -> None:
    """The function that a GPU runs, on a CPU."""
    rng = np.random.default_rng(2)
    index, queries = index_of([tokens(rng) for _ in range(50)]), [tokens(rng).astype(np.float32) for _ in range(4)]
    np.testing.assert_allclose(
        maxsim._fast_scores(queries, index, "cpu"), maxsim._fast_scores(queries, index, None), atol=1e-5
    )


def test_fewer_documents_than_wanted_and_no_query() -> None:
    rng = np.random.default_rng(3)
    index, ranks = index_of([tokens(rng) for _ in range(3)]), np.arange(3, dtype=np.int32)
    assert search_maxsim([], index, 5, ranks) == []
    [(rows, _)] = search_maxsim([tokens(rng)], index, 5, ranks)
    assert sorted(rows) == [0, 1, 2]


def test_near_ties_are_decided_in_double_precision() -> None:
    """Float32 products of many tokens cannot tell these documents apart; the ranking can."""
    rng = np.random.default_rng(4)
    query = np.concatenate([tokens(rng, 64, 40) for _ in range(6)])
    document = tokens(rng, 64, 30)
    nearly = [document.copy() for _ in range(30)]
    for number, copied in enumerate(nearly):
        copied[0, number % 64] += 2.0**-10 * (number % 5)
    ranks = rng.permutation(30).astype(np.int32)
    expected = np.asarray(plain(query, nearly), np.float32)
    [(rows, scores)] = search_maxsim([query], index_of(nearly), 7, ranks)
    assert rows[np.lexsort((-ranks[rows], -scores))].tolist() == np.lexsort((-ranks, -expected))[:7].tolist()


def test_products_on_a_gpu_are_exact_float32_also_if_the_program_allowed_tf32(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    chosen: list[str] = []
    choose = torch.set_float32_matmul_precision
    monkeypatch.setattr(torch, "set_float32_matmul_precision", lambda name: chosen.append(name) or choose(name))
    before = torch.get_float32_matmul_precision()
    try:
        choose("high")
        score = maxsim._scorer_on_gpu(np.ones((2, 4), np.float32), np.array([0]), "cpu")
        assert score(np.ones((3, 4), np.float16), np.array([0, 1])).tolist() == [[8.0, 8.0]]
        assert chosen == ["highest", "high"]
    finally:
        choose(before)
