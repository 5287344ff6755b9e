"""Exact dense search: what float64 says, from every backend, in bounded memory."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from r2med.core.errors import UserError
from r2med.retrieve.dense import cpu_products, exact_search, gpu_products, shortlist
from r2med.retrieve.dense.cpu_products import CpuProducts
from r2med.retrieve.dense.exact_search import SearchCache, search_exact

torch = pytest.importorskip("torch")
DEVICES = ["cpu", "gpu"] + ["cuda"] * torch.cuda.is_available()


@pytest.fixture(autouse=True)
def _code_of_gpus_runs_here(monkeypatch):
    real = exact_search._gpu
    monkeypatch.setattr(exact_search, "_gpu", lambda device: "cpu" if device == "gpu" else real(device))


def ranking(found, ranks):
    """Rows and scores in the order that Run.ranked gives them."""
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


def check(queries, documents, k, *, cosine=False, blocks=None, seed=0, **settings):
    """Compare all backends with brute force; rankings must be equal, scores as near as float32 gets."""
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


@given(
    st.integers(1, 6), st.integers(1, 60), st.integers(1, 40), st.integers(1, 70), st.integers(0, 2**32 - 1),
    st.booleans(), st.sampled_from(["normal", "integers", "duplicates", "ulps", "sparse"]), st.integers(1, 60),
)  # fmt: skip
@settings(max_examples=150, deadline=None)
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
    check(queries, documents, k, cosine=cosine, blocks=split(documents, size), seed=seed)


@given(
    st.integers(1, 4), st.integers(100, 1500), st.integers(1, 200), st.integers(0, 2**32 - 1), st.booleans(),
    st.sampled_from(["normal", "ascending", "duplicates", "ulps", "equal"]), st.integers(1, 400),
)  # fmt: skip
@settings(max_examples=80, deadline=None)
def test_lists_that_fill_in_every_batch_lose_nothing(q, n, k, seed, cosine, kind, batch):
    rng = np.random.default_rng(seed)
    queries, documents = np.abs(rng.standard_normal((q, 6))).astype(np.float32), np.ones((n, 6), np.float32)
    if kind in ("normal", "ascending"):
        documents = rng.standard_normal((n, 6)).astype(np.float32)
    if kind == "ascending":  # each is a candidate when it comes
        documents = documents[np.argsort(documents @ queries[0])]
    elif kind == "duplicates":
        documents = rng.standard_normal((n // 50 + 1, 6)).astype(np.float32)[rng.integers(0, n // 50 + 1, n)]
    elif kind == "ulps":
        documents = np.nextafter(documents, rng.choice(np.float32([-9, 9]), documents.shape))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_products, "TILE_DOCUMENTS", batch)
        patch.setattr(cpu_products, "TILE_SCORES", 1)
        patch.setattr(gpu_products, "CHUNK_ROWS", batch)
        patch.setattr(gpu_products, "MAX_CANDIDATES", 8 * batch)
        patch.setattr(gpu_products, "QUERIES_AT_ONCE", 3)
        patch.setattr(shortlist, "SPARE_CANDIDATES", 32)
        check(queries, documents, k, cosine=cosine, seed=seed)


@pytest.mark.parametrize("cosine", [False, True])
def test_a_deep_ranking_over_many_documents_is_exact(cosine):
    # Deep enough that only samples and near ties are scored again, wide enough that the threshold is guessed.
    check(normal(40, 96), normal(20_000, 96, seed=2), 1000, cosine=cosine)


def test_near_duplicates_one_ulp_apart_are_ordered_alike_by_every_backend():
    base = normal(200, 300, seed=3)
    rng = np.random.default_rng(4)
    documents = base[rng.integers(0, 200, 9000)]
    touched = rng.random(documents.shape) < 0.01
    documents = np.where(touched, np.nextafter(documents, np.float32(9)), documents)
    check(normal(30, 300), documents, 500)
    check(normal(30, 300), documents, 500, cosine=True)


@pytest.mark.parametrize("cosine", [False, True])
def test_masses_of_ties_are_cut_by_rank(cosine):
    rng = np.random.default_rng(5)
    documents = rng.integers(0, 2, (12_000, 8)).astype(np.float32)
    check(rng.integers(0, 3, (9, 8)).astype(np.float32), documents, 100, cosine=cosine, blocks=split(documents, 700))


@pytest.mark.parametrize(("count", "k"), [(3000, 100), (20_000, 1000), (20_000, 300)])
def test_nothing_behind_more_ties_than_a_list_holds_is_lost(count, k):
    documents = np.ones((count, 8), np.float32)
    documents[-1] = 2
    check(np.ones((2, 8), np.float32), documents, k)


def test_rankings_agree_where_long_sums_cancel():
    # Partial sums far above the result: the rounding is much larger than for random signs.
    half = np.abs(normal(3000, 512, seed=6)) + 3
    documents = np.concatenate((half, -half + normal(3000, 512, seed=7) * 1e-4), axis=1)
    check(np.abs(normal(12, 1024)) + 1, documents, 400)


def test_a_lone_perfect_match_does_not_disturb_the_rest():
    documents = normal(8000, 128, seed=8)
    documents[17] = normal(20, 128)[3] * 50
    check(normal(20, 128), documents, 1000)


def test_scores_may_be_negative_and_every_document_counts():
    documents = np.abs(normal(50, 7, seed=9))
    check(-np.abs(normal(3, 7)), documents, 20)


@pytest.mark.parametrize("cosine", [False, True])
def test_zero_vectors_score_zero(cosine):
    documents, queries = normal(30, 5, seed=10), normal(4, 5)
    documents[::3] = 0
    queries[1] = 0
    check(queries, documents, 12, cosine=cosine)
    ranks = np.arange(30, dtype=np.int32)
    for device in DEVICES:
        _, scores = search_exact(queries, [(0, documents)], 30, ranks, cosine=cosine, device=device)[1]
        assert not scores.any()


@pytest.mark.parametrize("scale", [1e-42, 1e-30, 1e15, 1e30])
def test_cosines_do_not_depend_on_the_size_of_vectors(scale):
    documents = normal(300, 20, seed=11)
    documents[::2] *= np.float32(scale)
    check(normal(5, 20) * np.float32(1e-30), documents, 40, cosine=True)


def test_more_than_all_documents_gives_all():
    check(normal(3, 4), normal(10, 4, seed=12), 99)
    check(normal(3, 4), normal(1, 4, seed=12), 5)
    check(normal(1, 4), normal(10, 4, seed=12), 1)


def test_no_queries_and_no_documents_are_no_error():
    ranks = np.empty(0, np.int32)
    for device in DEVICES:
        assert search_exact(np.empty((0, 4), np.float32), [], 3, ranks, device=device) == []
        for blocks in ([], [(0, np.empty((0, 4), np.float32))]):
            found = search_exact(normal(2, 4), blocks, 3, ranks, device=device)
            assert [len(rows) for rows, _ in found] == [0, 0]


@pytest.mark.parametrize("cosine", [False, True])
def test_float16_blocks_are_searched_as_the_numbers_they_are(cosine):
    documents = normal(5000, 64, seed=13).astype(np.float16)
    check(normal(10, 64), documents, 200, cosine=cosine, blocks=split(documents, 1024))


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("cosine", [False, True])
def test_vectors_that_stay_on_the_gpu_are_found_there(device, cosine):
    documents, cache = normal(5000, 24, seed=20), SearchCache()
    ranks = np.arange(5000, dtype=np.int32)
    for seed in (21, 22):
        queries = normal(7, 24, seed=seed)
        search_exact(queries, split(documents, 700), 60, ranks, cosine=not cosine, device=device, cache=cache)
        found = search_exact(queries, split(documents, 700), 60, ranks, cosine=cosine, device=device, cache=cache)
        expected = brute_force(queries, documents, 60, ranks, cosine)
        assert [rows for rows, _ in ranking(found, ranks)] == [rows for rows, _ in expected]
        assert [count for *_, count in cache.on_gpu] == [5000, 5000], "once for cosines, once for dot products"


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_lengths_of_documents_are_taken_once(kind, cosine, monkeypatch):
    documents, cache = normal(3000, 24, seed=20), SearchCache()
    documents *= np.random.default_rng(21).uniform(0.1, 9, (3000, 1)).astype(np.float32)
    if kind == np.float32:
        documents[[7, 1500]] *= np.float32([[1e25], [1e-30]])  # squares of these are no numbers of float32
    documents[[8, 2999]] = 0
    documents = documents.astype(kind)
    ranks = np.random.default_rng(22).permutation(3000).astype(np.int32)
    for seed in (23, 24):
        queries = normal(7, 24, seed=seed)
        found = search_exact(queries, split(documents, 700), 60, ranks, cosine=cosine, device="cpu", cache=cache)
        expected = brute_force(queries, documents, 60, ranks, cosine=cosine)
        assert [rows for rows, _ in ranking(found, ranks)] == [rows for rows, _ in expected]
        right = np.linalg.norm(documents.astype(np.float64), axis=1)
        np.testing.assert_allclose(cache.lengths(3000), right, rtol=1e-5)


@pytest.mark.parametrize("factor", [1e6, 1e-6])
@pytest.mark.parametrize("cosine", [False, True])
def test_one_document_a_million_times_as_long_as_the_others_changes_nothing(factor, cosine):
    # Its own sums cancel, so that it belongs into the middle of the ranking.
    documents, queries = normal(4000, 64, seed=26), normal(5, 64)
    long = normal(1, 64, seed=27)[0].astype(np.float64) * factor
    for query in queries[:1].astype(np.float64):
        long += (documents[7].astype(np.float64) @ query - long @ query) / (query @ query) * query
    documents[2500] = long
    check(queries, documents, 200, cosine=cosine, blocks=split(documents, 512))


@pytest.mark.parametrize("scale", [1e-44, 1e-39, 1e-20])
def test_subnormal_documents_and_queries_are_ranked_as_float64_does(scale):
    documents = normal(400, 12, seed=28)
    documents[::2] *= np.float32(scale)
    check(normal(4, 12), documents, 50)
    check(normal(4, 12) * np.float32(scale), documents, 50, cosine=True)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("crowded", [False, True])
def test_one_of_the_k_best_whose_sum_is_far_off_is_found(cosine, crowded, monkeypatch):
    """Its large numbers cancel only at the end, unlike those of others; between it and the k-th there may be none.

    How far it is off depends on the order in which a BLAS adds up: 195 units of float32 on aarch64.
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
    check(queries, random.permutation(documents), k, cosine=cosine)


@pytest.mark.parametrize("threads", ["1", "3", "16"])
def test_the_ranking_is_the_same_whatever_the_number_of_threads(threads, monkeypatch):
    monkeypatch.setenv("R2MED_THREADS", threads)
    documents = normal(40_000, 16, seed=23)
    check(normal(9, 16), documents, 300, blocks=split(documents, 9000))


def test_more_shards_than_files_may_be_open_are_searched(tmp_path):
    code = """
import resource, sys
from pathlib import Path
import numpy as np
from r2med.core.cost import Cost
from r2med.retrieve.dense.embeddings import Embeddings
from r2med.retrieve.dense.exact_search import search_exact
from r2med.store import Artefact
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
shards = []
for start in range(0, 300, 2):
    folder = Path(sys.argv[1]) / str(start)
    folder.mkdir()
    np.save(folder / "vectors.npy", np.eye(300, dtype=np.float32)[start : start + 2])
    shards.append(Artefact(folder, {"start": start}))
found = search_exact(np.eye(300, dtype=np.float32), Embeddings(tuple(shards), Cost()).blocks, 1, np.arange(300))
print(all(rows.tolist() == [row] for row, (rows, _) in enumerate(found)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_blocks_of_one_row_find_what_one_block_finds():
    documents = normal(300, 16, seed=14)
    check(normal(5, 16), documents, 30, blocks=split(documents, 1))
    check(normal(5, 16), documents, 30, blocks=split(documents, 7))


@pytest.mark.parametrize("memory", [0, 1, 1000, 100_000])
def test_a_tiny_memory_budget_changes_nothing(memory):
    documents = normal(900, 16, seed=15)
    check(normal(6, 16), documents, 40, blocks=split(documents, 100), memory=memory)
    check(normal(6, 16), documents, 40, cosine=True, memory=memory)


def test_mapped_files_are_searched_read_only(tmp_path):
    np.save(tmp_path / "vectors.npy", normal(4000, 32, seed=16))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    check(normal(6, 32), mapped, 300, blocks=split(mapped, 512), memory=1 << 18)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused_and_named(device, cosine, value):
    documents, ranks = normal(500, 8, seed=17), np.arange(500, dtype=np.int32)
    documents[321, 5] = value
    for queries in (normal(3, 8), np.zeros((1, 8), np.float32), normal(1, 8)):
        with pytest.raises(ValueError, match="row 321 has NaN or infinite"):
            search_exact(queries, split(documents, 100), 5, ranks, cosine=cosine, device=device)
    queries = normal(3, 8)
    queries[2, 0] = value
    with pytest.raises(ValueError, match="query 2 has NaN or infinite"):
        search_exact(queries, split(documents, 100), 5, ranks, cosine=cosine, device=device)


def test_wrong_shapes_types_and_devices_are_refused():
    queries, documents, ranks = normal(2, 4), normal(5, 4), np.arange(5, dtype=np.int32)
    with pytest.raises(ValueError, match="do not fit queries of dimension 4"):
        search_exact(queries, [(0, documents[:, :3])], 1, ranks)
    with pytest.raises(ValueError, match="float32 or float16, not float64"):
        search_exact(queries, [(0, documents.astype(np.float64))], 1, ranks)
    with pytest.raises(ValueError, match="k must be at least 1"):
        search_exact(queries, [(0, documents)], 0, ranks)
    with pytest.raises(UserError, match="--device cuda:77: torch sees"):
        search_exact(queries, [(0, documents)], 1, ranks, device="cuda:77")
    with pytest.raises(UserError, match="no device 'abacus'"):
        search_exact(queries, [(0, documents)], 1, ranks, device="abacus")


def test_reduced_precision_chosen_for_models_does_not_reach_the_search():
    import torch

    torch.set_float32_matmul_precision("medium")
    try:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            check(normal(20, 256), normal(5000, 256, seed=18), 700)
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_the_measured_bound_grows_when_a_near_tie_deviates_more_than_the_sample(monkeypatch):
    # A product that is far off on a few documents, which the sample of eight a query is unlikely to meet.
    real = CpuProducts._multiply

    def careless(self, piece, lengths, out):
        real(self, piece, lengths, out)
        out[:, 5::40] += np.float32(2e-6)

    monkeypatch.setattr(CpuProducts, "_multiply", careless)
    check(normal(130, 64), normal(6000, 64, seed=19), 800)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [1, 3, 40])
def test_a_document_too_long_for_float32_is_refused(device, k):
    documents = np.ones((33, 2), np.float32) * np.arange(33, dtype=np.float32)[:, None]
    documents[1] = 3e38, -3e38
    queries = np.array([[2, 2], [1, 2]], np.float32)
    with pytest.raises(ValueError, match="row 1 is so long that its score may exceed float32"):
        search_exact(queries, [(0, documents)], k, np.arange(33, dtype=np.int32), device=device)


def test_more_documents_than_ranks_are_refused():
    documents = np.ones((5, 2), np.float32)
    with pytest.raises(ValueError, match="row 4 has no rank: there are 4"):
        search_exact(documents, [(0, documents)], 1, np.arange(4, dtype=np.int32), device="cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_blocks_that_do_not_ascend_are_refused(device):
    documents = np.ones((6, 2), np.float32)
    blocks = [(0, documents[:3]), (2, documents[:0]), (3, documents[3:])]
    with pytest.raises(ValueError, match="row 2 comes after row 2: blocks must have ascending rows"):
        search_exact(documents, blocks, 1, np.arange(6, dtype=np.int32), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_memory_stays_bounded_whatever_the_size_of_the_corpus(device):
    rows, dimension, count, memory = 2000, 128, 40, 16 << 20

    def blocks():  # 40 MB in all, one MB at a time
        for number in range(count):
            yield number * rows, normal(rows, dimension, seed=number)

    ranks = np.arange(rows * count, dtype=np.int32)
    queries = normal(20, dimension)
    search_exact(queries, [(0, normal(10, dimension))], 5, ranks, device=device)  # imports are not counted
    tracemalloc.start()
    try:
        found = search_exact(queries, blocks(), 100, ranks, memory=memory, device=device)
        assert tracemalloc.get_traced_memory()[1] < memory
    finally:
        tracemalloc.stop()
    whole = np.concatenate([block for _, block in blocks()])
    expected = brute_force(queries, whole, 100, ranks)
    assert [rows for rows, _ in ranking(found, ranks)] == [rows for rows, _ in expected]


def test_without_torch_numpy_does_the_work():
    code = """
import sys
sys.modules["torch"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "torch" else real(name, *rest)
import numpy as np
from r2med.core.errors import MissingExtraError
from r2med.retrieve.dense.exact_search import search_exact
documents, ranks = np.eye(5, dtype=np.float32), np.arange(5, dtype=np.int32)
found = search_exact(documents[2:3], [(0, documents)], 1, ranks)
assert found[0][0].tolist() == [2], found
try:
    search_exact(documents[2:3], [(0, documents)], 1, ranks, device="cuda")
except MissingExtraError:
    print("fine")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "fine\n", done.stderr


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dimension", [4, 64])
@pytest.mark.parametrize("k", [1, 10, 50])
def test_sums_that_exceed_float32_on_the_way_are_refused_and_named(device, dimension, k):
    large = np.float32(2**66)
    documents, queries = np.zeros((50, dimension), np.float32), np.zeros((2, dimension), np.float32)
    documents[:, 0] = np.arange(50)
    documents[10:20, 1], documents[10:20, -1] = large, -large
    queries[:, 0], queries[:, 1], queries[:, -1] = 1, large, large
    with pytest.raises(ValueError, match=r"row 1\d is so long that its score may exceed float32"):
        search_exact(queries, [(0, documents)], k, np.arange(50, dtype=np.int32), device=device)
