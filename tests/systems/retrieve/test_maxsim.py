"""Exact search with several vectors per text: rankings and scores are those of float64, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from r2med.data.corpus import Corpus
from r2med.data.runs.run import Run
from r2med.systems.retrieve.exact import cpu_products, exact_scores, gpu_products
from r2med.systems.retrieve.exact.cpu_products import SearchCache
from r2med.systems.retrieve.exact.exact_scores import maxsim
from r2med.systems.retrieve.exact.exact_search import search_exact
from support.exact_search import DEVICES, brute_force, check_search, normal, ragged, split


def texts(
    count: int, seed: int, kind: Any = np.float16, dimension: int = 16, most: int = 9, least: int = 1
) -> list[Any]:
    """Return unit vectors of some texts, between `least` and `most` for each."""
    rng = np.random.default_rng(seed)
    rows = [rng.standard_normal((rng.integers(least, most + 1), dimension)) for _ in range(count)]
    return [(each / np.linalg.norm(each, axis=1, keepdims=True)).astype(kind) for each in rows]


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    small = {
        cpu_products: {
            "PIECE_VECTORS": 30,
            "QUERY_VECTORS": 20,
            "QUERIES_AT_ONCE": 2,
            "VECTORS_IN_ORDER": 3,
            "TILE_DOCUMENTS": 40,
            "TILE_SCORES": 1,
        },
        gpu_products: {"CHUNK_TEXTS": 40, "GROUP_VECTORS": 20, "PRODUCTS_AT_ONCE": 300, "DOUBLES_AT_ONCE": 2000},
    }
    for module, values in small.items():
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("memory", [0, 1 << 30])
@pytest.mark.usefixtures("small_steps")
def test_copies_zeros_empty_and_very_long_texts_are_ranked_as_float64_does(
    memory: int, cosine: bool, kind: Any
) -> None:
    rng, documents = np.random.default_rng(1), texts(90, 1, kind)
    documents = [(document * rng.uniform(0.5, 1)).astype(kind) for document in documents]
    documents[40], documents[80] = documents[3], documents[3]  # copies tie
    documents[7] = np.zeros((2, 16), kind)
    documents[11], documents[12] = documents[11] * kind(300), documents[12] * kind(1e-3)
    documents[50] = texts(1, 2, kind, most=70, least=70)[0]
    if kind == np.float32:
        documents[61], documents[62] = documents[61] * kind(1e15), documents[62] * kind(1e-30)
    for number in (0, 30, 89):
        documents[number] = np.empty((0, 16), kind)
    queries = [*texts(12, 3, np.float32), -texts(1, 4, np.float32)[0], np.zeros((2, 16), np.float32)]
    check_search(queries, documents, 10, cosine=cosine, memory=memory, blocks=split(documents, 20))
    check_search(queries, documents, 200, cosine=cosine, memory=memory)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.usefixtures("small_steps")
def test_a_query_with_one_vector_scores_the_best_passage_of_a_document(cosine: bool) -> None:
    documents = texts(90, 5, np.float32, most=4)
    documents[13], documents[14] = documents[40], documents[40][::-1]
    check_search(normal(7, 16), documents, 12, cosine=cosine, blocks=split(documents, 25))
    check_search(texts(5, 6, np.float32), normal(80, 16, seed=2), 12, cosine=cosine)


def test_near_ties_are_decided_in_double_precision() -> None:
    """Float32 products of many tokens cannot tell these documents apart; the ranking can."""
    query, document = np.concatenate(texts(6, 7, np.float32, 64, 40)), texts(1, 8, np.float16, 64, 30)[0]
    nearly = [document.copy() for _ in range(30)]
    for number, copied in enumerate(nearly):
        copied[0, number % 64] += np.float16(2.0**-10 * (number % 5))
    check_search([query], nearly, 7)


def test_sums_of_products_that_half_precision_rounds_are_told_apart() -> None:
    # Of length 1 the vectors of the query are numbers of half precision. Only the rounding of products is left.
    query = np.array(20 * [[1, 1, 1, 1], [1, 1, 1, -1]], np.float32)
    vectors = 0.7 + 0.003 * normal(2000, 4, seed=2)
    check_search([query], list(vectors.astype(np.float16)[:, None]), 50)


def test_many_documents_with_tokens_of_any_length_are_ranked_as_float64_does() -> None:
    documents = texts(1500, 9, np.float16, 24, 12)
    rng = np.random.default_rng(9)
    documents = [(each * np.float16(rng.uniform(0.1, 9))).astype(np.float16) for each in documents]
    check_search(texts(3, 10, np.float32, 24, 6), documents, 40, blocks=split(documents, 512))


def test_fewer_documents_than_wanted_and_no_query() -> None:
    documents = texts(3, 11)
    check_search(texts(2, 12, np.float32), documents, 5)
    for device in DEVICES:
        assert search_exact(ragged([]), split(documents, 3), 5, np.arange(3, dtype=np.int32), device=device) == []


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("device", DEVICES)
def test_a_run_has_the_same_bytes_for_any_threads_memory_and_batch(
    device: str, several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(13)
    queries: Any = texts(9, 14, np.float32, 48, 20) if several else normal(9, 48)
    documents: Any = texts(700, 15, np.float16, 48, 12) if several else normal(3000, 48, seed=2)
    copied = rng.integers(0, len(documents), 100)
    for number in copied.tolist():
        documents[number] = documents[5]
    corpus = Corpus.of((f"d{number}", "") for number in range(len(documents)))

    def run(asked: Any, **settings: Any) -> list[tuple[bytes, bytes]]:
        given = ragged(asked) if several else asked
        hits = search_exact(given, split(documents, 400), 60, corpus.id_ranks(), device=device, **settings)
        found = Run.ranked([str(number) for number in range(len(asked))], hits, corpus)
        return [(rows.tobytes(), scores.tobytes()) for rows, scores in zip(found.rows, found.scores, strict=True)]

    monkeypatch.setenv("R2MED_THREADS", "1")
    expected = run(queries)
    assert run(queries, memory=1000) == expected
    monkeypatch.setenv("R2MED_THREADS", "2")
    assert run(queries) == expected
    assert run(queries, memory=1000, cache=SearchCache()) == expected
    assert [line for number in range(9) for line in run(queries[number : number + 1])] == expected


def test_the_score_of_a_pair_is_that_of_the_search() -> None:
    query, document = texts(1, 16, np.float32, 32, 20)[0], texts(1, 17, np.float16, 32, 20)[0]
    [(_, scores)] = brute_force([query], [document], 1, np.zeros(1, np.int32))
    assert maxsim(query, document) == scores[0]
    assert maxsim(query, document[:0]) == 0


@pytest.mark.parametrize("several", [False, True])
def test_sums_in_another_order_round_alike_or_are_computed_again(
    several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The products of a BLAS are wrong in the last bits here; without the second sum, many scores would differ."""
    again: list[int] = []
    torch = pytest.importorskip("torch")
    in_order, matmul, bmm = exact_scores.Queries.scores_in_order, np.matmul, torch.bmm

    def counted(self: Any, lines: Any, documents: Any) -> Any:
        again.append(len(lines))
        return in_order(self, lines, documents)

    def wrong(*arrays: Any, out: Any = None) -> Any:
        products = matmul(*arrays, out=out)
        products *= 1 + 2.0**-26
        return products

    monkeypatch.setattr(exact_scores.Queries, "scores_in_order", counted)
    monkeypatch.setattr(np, "matmul", wrong)
    monkeypatch.setattr(torch, "bmm", lambda *tensors: bmm(*tensors) * (1 + 2.0**-26))
    monkeypatch.setattr(exact_scores, "OPERATION_ERROR", {np.float32: 1e-6, np.float64: 1e-8})
    documents: Any = texts(200, 18) if several else normal(200, 16, seed=18)
    check_search(texts(4, 19, np.float32) if several else normal(4, 16), documents, 50)
    assert sum(again) > 20


def test_the_vectors_of_documents_stay_on_the_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    documents, queries, cache = texts(60, 20), ragged(texts(2, 21, np.float32)), SearchCache()
    ranks = np.arange(60, dtype=np.int32)
    first = search_exact(queries, split(documents, 60), 5, ranks, device="gpu", cache=cache)
    monkeypatch.setattr(gpu_products.GpuProducts, "_chunk", None)  # would fail if it were called
    second = search_exact(queries, split(documents, 60), 5, ranks, device="gpu", cache=cache)
    assert [rows.tolist() for rows, _ in first] == [rows.tolist() for rows, _ in second]


def test_reduced_precision_that_another_library_chose_does_not_reach_the_products() -> None:
    torch = pytest.importorskip("torch")
    settings = torch.backends.cuda.matmul
    names = [name for name in gpu_products.REDUCED_PRECISION if hasattr(settings, name)]
    before = [getattr(settings, name) for name in names]
    seen: list[list[bool]] = []

    class Torch:
        @staticmethod
        def mm(left: Any, right: Any) -> Any:
            seen.append([getattr(settings, name) for name in names])
            return left @ right

    try:
        torch.set_float32_matmul_precision("high")  # TF32
        for name in names:
            setattr(settings, name, True)
        check_search(texts(3, 22, np.float32), texts(50, 23), 9)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "mm", Torch.mm)
            search_exact(normal(2, 4), [(0, normal(9, 4))], 3, np.arange(9, dtype=np.int32), device="gpu")
        assert seen
        assert not any(map(any, seen))
        assert all(getattr(settings, name) for name in names)
    finally:
        torch.set_float32_matmul_precision("highest")
        for name, value in zip(names, before, strict=True):
            setattr(settings, name, value)
