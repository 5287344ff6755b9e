"""Exact search with one vector per text: every backend gives the ranking and the scores of float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2med.systems.retrieve.exact import cpu_products, gpu_products
from r2med.systems.retrieve.exact.exact_search import search_exact
from support.exact_search import DEVICES, brute_force, check_search, normal, split


@given(
    st.integers(1, 6), st.integers(1, 60), st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32 - 1),
    st.booleans(), st.sampled_from(["normal", "integers", "duplicates", "ulps", "sparse"]), st.integers(1, 60),
)  # fmt: skip
def test_the_ranking_is_that_of_float64_rounded_to_float32(q, n, d, k, seed, cosine, kind, size):
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((q, d)).astype(np.float32)
    documents = rng.standard_normal((n, d)).astype(np.float32)
    if kind == "integers":
        queries, documents = np.round(queries), np.round(documents)
    elif kind == "duplicates":
        documents = documents[rng.integers(0, max(1, n // 5), n)]
    elif kind == "ulps":
        documents = documents[rng.integers(0, max(1, n // 5), n)]
        documents = np.nextafter(documents, rng.choice(np.float32([-9, 9]), documents.shape))
    elif kind == "sparse":
        documents *= rng.random(documents.shape) < 0.1
        queries *= rng.random(queries.shape) < 0.5
    check_search(queries, documents, k, cosine=cosine, blocks=split(documents, size), seed=seed)


@given(
    st.integers(1, 4), st.integers(100, 1500), st.integers(1, 200), st.integers(0, 2**32 - 1), st.booleans(),
    st.sampled_from(["normal", "ascending", "duplicates", "ulps", "equal"]), st.integers(1, 400),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_lists_that_fill_in_every_batch_lose_nothing(q, n, k, seed, cosine, kind, batch):
    rng = np.random.default_rng(seed)
    queries, documents = np.abs(rng.standard_normal((q, 6))).astype(np.float32), np.ones((n, 6), np.float32)
    if kind in ("normal", "ascending"):
        documents = rng.standard_normal((n, 6)).astype(np.float32)
    if kind == "ascending":  # each document is a candidate when it is read
        documents = documents[np.argsort(documents @ queries[0])]
    elif kind == "duplicates":
        documents = rng.standard_normal((n // 50 + 1, 6)).astype(np.float32)[rng.integers(0, n // 50 + 1, n)]
    elif kind == "ulps":
        documents = np.nextafter(documents, rng.choice(np.float32([-9, 9]), documents.shape))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_products, "TILE_DOCUMENTS", batch)
        patch.setattr(cpu_products, "TILE_SCORES", 1)
        patch.setattr(gpu_products, "CHUNK_TEXTS", batch)
        patch.setattr(gpu_products, "GROUP_QUERIES", 3)
        check_search(queries, documents, k, cosine=cosine, seed=seed)


@pytest.mark.parametrize("cosine", [False, True])
def test_a_deep_ranking_over_many_documents_is_exact(cosine):
    # Wide enough that the first floor is estimated from bundles.
    check_search(normal(40, 96), normal(20_000, 96, seed=2), 1000, cosine=cosine)


def test_near_duplicates_one_ulp_apart_are_ordered_alike_by_every_backend():
    base = normal(200, 300, seed=3)
    rng = np.random.default_rng(4)
    documents = base[rng.integers(0, 200, 9000)]
    touched = rng.random(documents.shape) < 0.01
    documents = np.where(touched, np.nextafter(documents, np.float32(9)), documents)
    check_search(normal(30, 300), documents, 500)
    check_search(normal(30, 300), documents, 500, cosine=True)


@pytest.mark.parametrize("cosine", [False, True])
def test_very_many_ties_are_cut_by_rank(cosine):
    rng = np.random.default_rng(5)
    documents = rng.integers(0, 2, (12_000, 8)).astype(np.float32)
    check_search(
        rng.integers(0, 3, (9, 8)).astype(np.float32), documents, 100, cosine=cosine, blocks=split(documents, 700)
    )


@pytest.mark.parametrize(("count", "k"), [(3000, 100), (20_000, 1000), (20_000, 300)])
def test_no_document_is_lost_behind_very_many_ties(count, k):
    documents = np.ones((count, 8), np.float32)
    documents[-1] = 2
    check_search(np.ones((2, 8), np.float32), documents, k)


def test_rankings_agree_where_long_sums_cancel():
    # Partial sums are far above the result, so the rounding is much larger than for random signs.
    half = np.abs(normal(3000, 512, seed=6)) + 3
    documents = np.concatenate((half, -half + normal(3000, 512, seed=7) * 1e-4), axis=1)
    check_search(np.abs(normal(12, 1024)) + 1, documents, 400)


def test_a_lone_perfect_match_does_not_disturb_the_rest():
    documents = normal(8000, 128, seed=8)
    documents[17] = normal(20, 128)[3] * 50
    check_search(normal(20, 128), documents, 1000)


def test_scores_may_be_negative_and_every_document_counts():
    documents = np.abs(normal(50, 7, seed=9))
    check_search(-np.abs(normal(3, 7)), documents, 20)


@pytest.mark.parametrize("cosine", [False, True])
def test_zero_vectors_score_zero(cosine):
    documents, queries = normal(30, 5, seed=10), normal(4, 5)
    documents[::3] = 0
    queries[1] = 0
    check_search(queries, documents, 12, cosine=cosine)
    ranks = np.arange(30, dtype=np.int32)
    for device in DEVICES:
        _, scores = search_exact(queries, [(0, documents)], 30, ranks, cosine=cosine, device=device)[1]
        assert not scores.any()


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e15, 1e30])
def test_cosines_do_not_depend_on_the_size_of_vectors(scale):
    documents = normal(300, 20, seed=11)
    documents[::2] *= np.float32(scale)
    check_search(normal(5, 20) * np.float32(1e-30), documents, 40, cosine=True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e-15, 1e15])
def test_few_documents_are_found_among_lengths_that_float32_products_cannot_tell_apart(scale, cosine):
    documents, queries = normal(600, 20, seed=12), normal(3, 20)
    documents[::2] *= np.float32(scale)
    check_search(queries, documents, 10, cosine=cosine)
    check_search(queries * np.float32(1e-30), documents, 10, cosine=cosine)
    check_search(queries, documents * np.float32(1e-22), 10, cosine=cosine)


def test_k_above_the_number_of_documents_gives_all_documents():
    check_search(normal(3, 4), normal(10, 4, seed=12), 99)
    check_search(normal(3, 4), normal(1, 4, seed=12), 5)
    check_search(normal(1, 4), normal(10, 4, seed=12), 1)


def test_no_queries_or_no_documents_is_not_an_error():
    ranks = np.empty(0, np.int32)
    for device in DEVICES:
        assert search_exact(np.empty((0, 4), np.float32), [], 3, ranks, device=device) == []
        for blocks in ([], [(0, np.empty((0, 4), np.float32))]):
            found = search_exact(normal(2, 4), blocks, 3, ranks, device=device)
            assert [len(rows) for rows, _ in found] == [0, 0]


@pytest.mark.parametrize("cosine", [False, True])
def test_float16_blocks_are_searched_as_the_numbers_they_are(cosine):
    documents = normal(5000, 64, seed=13).astype(np.float16)
    check_search(normal(10, 64), documents, 200, cosine=cosine, blocks=split(documents, 1024))


@pytest.mark.parametrize("factor", [1e6, 1e-6])
@pytest.mark.parametrize("cosine", [False, True])
def test_one_document_a_million_times_as_long_as_the_others_changes_nothing(factor, cosine):
    # Its own sums cancel, so it belongs in the middle of the ranking.
    documents, queries = normal(4000, 64, seed=26), normal(5, 64)
    long = normal(1, 64, seed=27)[0].astype(np.float64) * factor
    for query in queries[:1].astype(np.float64):
        long += (documents[7].astype(np.float64) @ query - long @ query) / (query @ query) * query
    documents[2500] = long
    check_search(queries, documents, 200, cosine=cosine, blocks=split(documents, 512))


@pytest.mark.parametrize("scale", [1e-44, 1e-39, 1e-20])
def test_subnormal_documents_and_queries_are_ranked_as_float64_does(scale):
    documents = normal(400, 12, seed=28)
    documents[::2] *= np.float32(scale)
    check_search(normal(4, 12), documents, 50)
    check_search(normal(4, 12) * np.float32(scale), documents, 50, cosine=True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("crowded", [False, True])
def test_a_best_document_with_a_large_rounding_error_is_found(cosine, crowded, monkeypatch):
    """Its large numbers cancel only at the end, unlike those of other documents.

    With `crowded`, many documents have scores between its fast score and its exact score. Its error depends on the
    order in which a BLAS adds up. On aarch64 it is 195 units of float32.
    """
    monkeypatch.setenv("R2MED_THREADS", "1")
    random, k, unit, base = np.random.default_rng(0), 10, 2.0**-24, 0.02
    queries = random.standard_normal((8, 1024))
    queries /= np.linalg.norm(queries, axis=1)[:, None]
    queries[0, 1:-1] *= 0.5
    queries[0, [0, -1]] = 0.6
    queries = queries.astype(np.float32)
    towards = queries[0].astype(np.float64) / np.linalg.norm(queries[0].astype(np.float64))
    inner = np.where(np.isin(np.arange(1024), [0, 1023]), 0, towards)
    inner /= np.linalg.norm(inner)

    def usual(score):
        other = random.standard_normal(1024)
        other[[0, -1]] = 0
        other -= other @ inner * inner
        along = score / (inner @ towards)
        return along * inner + np.sqrt(1 - along**2) * other / np.linalg.norm(other)

    def cancelling():
        vector = usual(base) / 2
        vector[0], vector[-1] = 0.6, base / 2 / towards[-1] - 0.6
        return vector / np.linalg.norm(vector)

    many = np.array([cancelling() for _ in range(400)], np.float32)
    sizes = np.linalg.norm(many.astype(np.float64), axis=1) * np.linalg.norm(queries[0].astype(np.float64))
    right = many.astype(np.float64) @ queries[0].astype(np.float64) / sizes
    off = right - (queries @ many.T)[0] / sizes
    worst, size = np.argmax(off), base + 1 / 32
    tops = [usual(right[worst] + size * (number + 1) / 20) for number in range(k - 1)]
    near = np.arange(-30 * unit * size, off[worst] - 40 * unit * size, 3 * unit * size) if crowded else []
    crowd = [usual(right[worst] - off[worst] + above) for above in near]
    far = [usual(random.uniform(-0.1, right[worst] * 0.9)) for _ in range(300)]
    documents = np.array([*tops, usual(right[worst] - 6 * unit * size), many[worst], *crowd, *far]).astype(np.float32)
    assert k in brute_force(queries, documents, k, np.arange(len(documents)), cosine)[0][0]
    check_search(queries, random.permutation(documents), k, cosine=cosine)


@pytest.mark.parametrize("threads", ["1", "3", "16"])
def test_the_ranking_does_not_depend_on_the_number_of_threads(threads, monkeypatch):
    monkeypatch.setenv("R2MED_THREADS", threads)
    documents = normal(40_000, 16, seed=23)
    check_search(normal(9, 16), documents, 300, blocks=split(documents, 9000))


def test_reduced_precision_chosen_for_models_does_not_reach_the_search():
    import torch

    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            check_search(normal(20, 256), normal(5000, 256, seed=18), 700)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")
