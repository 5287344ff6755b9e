"""Exact search: bounded memory, caches, and refused input."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.systems.retrieve.exact.cpu_products import SearchCache
from r2med.systems.retrieve.exact.exact_search import search_exact
from support.exact_search import DEVICES, brute_force, check_search, normal, ranking, split


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
        kept = [sum(len(chunk.rows) for chunk in chunks) for chunks in cache.on_gpu.values()]
        assert kept == [5000, 5000], "once for cosines, once for dot products"


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_lengths_of_documents_are_computed_once(kind, cosine, monkeypatch):
    documents, cache = normal(3000, 24, seed=20), SearchCache()
    documents *= np.random.default_rng(21).uniform(0.1, 9, (3000, 1)).astype(np.float32)
    if kind == np.float32:
        documents[[7, 1500]] *= np.float32([[1e25], [1e-30]])  # their squares overflow or underflow in float32
    documents[[8, 2999]] = 0
    documents = documents.astype(kind)
    ranks = np.random.default_rng(22).permutation(3000).astype(np.int32)
    for seed in (23, 24):
        queries = normal(7, 24, seed=seed)
        found = search_exact(queries, split(documents, 700), 60, ranks, cosine=cosine, device="cpu", cache=cache)
        expected = brute_force(queries, documents, 60, ranks, cosine=cosine)
        assert [rows for rows, _ in ranking(found, ranks)] == [rows for rows, _ in expected]
        right = np.linalg.norm(documents.astype(np.float64), axis=1)
        found = np.concatenate([lengths for _, lengths in sorted(cache.lengths.items())])
        np.testing.assert_allclose(found, right, rtol=1e-5)


@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("kind", ["normal", "duplicates", "ulps", "long"])
def test_a_single_question_finds_the_same_documents_again(kind, cosine, monkeypatch):
    documents, cache = normal(4000, 96, seed=31), SearchCache()
    if kind in ("duplicates", "ulps"):
        documents = documents[np.random.default_rng(32).integers(0, 400, 4000)]
    if kind == "ulps":
        documents = np.nextafter(documents, np.random.default_rng(33).choice(np.float32([-9, 9]), documents.shape))
    if kind == "long":
        documents[::2] *= np.float32(1e15)
    ranks = np.random.default_rng(34).permutation(4000).astype(np.int32)
    for seed, threads in enumerate("1281"):
        monkeypatch.setenv("R2MED_THREADS", threads)
        query = normal(1, 96, seed=seed)
        found = search_exact(query, split(documents, 700), 300, ranks, cosine=cosine, device="cpu", cache=cache)
        [(rows, scores)], [(right_rows, right_scores)] = (
            ranking(found, ranks),
            brute_force(query, documents, 300, ranks, cosine),
        )
        assert rows == right_rows
        assert scores.tobytes() == right_scores.tobytes()


def test_more_shards_than_the_limit_of_open_files_are_searched(tmp_path):
    code = """
import resource, sys
from pathlib import Path
import numpy as np
from r2med.foundation.core.cost import Cost
from r2med.systems.retrieve.vectors.embeddings import Embeddings
from r2med.systems.retrieve.exact.exact_search import search_exact
from r2med.foundation.store import Artefact
resource.setrlimit(resource.RLIMIT_NOFILE, (64, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
shards = []
for start in range(0, 300, 2):
    folder = Path(sys.argv[1]) / str(start)
    folder.mkdir()
    np.save(folder / "vectors.npy", np.eye(300, dtype=np.float32)[start : start + 2])
    shards.append(Artefact(folder, {"start": start, "cost": {}}))
found = search_exact(np.eye(300, dtype=np.float32), Embeddings(tuple(shards)).blocks, 1, np.arange(300))
print(all(rows.tolist() == [row] for row, (rows, _) in enumerate(found)))
"""
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True)
    assert done.stdout == "True\n", done.stderr


def test_blocks_of_one_row_find_what_one_block_finds():
    documents = normal(300, 16, seed=14)
    check_search(normal(5, 16), documents, 30, blocks=split(documents, 1))
    check_search(normal(5, 16), documents, 30, blocks=split(documents, 7))


@pytest.mark.parametrize("memory", [0, 1, 1000, 100_000])
def test_a_tiny_memory_budget_changes_nothing(memory):
    documents = normal(900, 16, seed=15)
    check_search(normal(6, 16), documents, 40, blocks=split(documents, 100), memory=memory)
    check_search(normal(6, 16), documents, 40, cosine=True, memory=memory)


def test_mapped_files_are_searched_read_only(tmp_path):
    np.save(tmp_path / "vectors.npy", normal(4000, 32, seed=16))
    mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
    check_search(normal(6, 32), mapped, 300, blocks=split(mapped, 512), memory=1 << 18)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("cosine", [False, True])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_vector_that_is_not_finite_is_refused_by_row(device, cosine, value):
    documents, ranks = normal(500, 8, seed=17), np.arange(500, dtype=np.int32)
    documents[321, 5] = value
    for queries in (normal(3, 8), np.zeros((1, 8), np.float32), normal(1, 8)):
        with pytest.raises(ValueError, match="row 321 has NaN or infinite"):
            search_exact(queries, split(documents, 100), 5, ranks, cosine=cosine, device=device)
    queries = normal(3, 8)
    queries[2, 0] = value
    with pytest.raises(ValueError, match="query 2 has NaN or infinite"):
        search_exact(queries, split(documents, 100), 5, ranks, cosine=cosine, device=device)


def test_a_wrong_k_and_devices_that_do_not_exist_are_refused():
    queries, documents, ranks = normal(2, 4), normal(5, 4), np.arange(5, dtype=np.int32)
    with pytest.raises(ValueError, match="k must be at least 1"):
        search_exact(queries, [(0, documents)], 0, ranks)
    with pytest.raises(UserError, match=r"device \(--device cuda:77\): torch sees"):
        search_exact(queries, [(0, documents)], 1, ranks, device="cuda:77")
    with pytest.raises(UserError, match="no device 'abacus'"):
        search_exact(queries, [(0, documents)], 1, ranks, device="abacus")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [1, 3, 40])
def test_a_document_too_long_for_float32_is_refused(device, k):
    documents = np.ones((33, 2), np.float32) * np.arange(33, dtype=np.float32)[:, None]
    documents[1] = 3e38, -3e38
    queries = np.array([[2, 2], [1, 2]], np.float32)
    with pytest.raises(ValueError, match="row 1 is too long; its score may exceed float32"):
        search_exact(queries, [(0, documents)], k, np.arange(33, dtype=np.int32), device=device)


@pytest.mark.parametrize("device", DEVICES)
def test_memory_stays_bounded_for_a_corpus_of_any_size(device):
    rows, dimension, count, memory = 2000, 128, 40, 16 << 20

    def blocks():  # 40 MB in total, one MB at a time
        for number in range(count):
            yield number * rows, normal(rows, dimension, seed=number)

    ranks = np.arange(rows * count, dtype=np.int32)
    queries = normal(20, dimension)
    search_exact(
        queries, [(0, normal(10, dimension))], 5, ranks, device=device
    )  # loads modules, which are not measured
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
from r2med.foundation.core.errors import MissingExtraError
from r2med.systems.retrieve.exact.exact_search import search_exact
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
def test_partial_sums_that_exceed_float32_are_refused_by_row(device, dimension, k):
    large = np.float32(2**66)
    documents, queries = np.zeros((50, dimension), np.float32), np.zeros((2, dimension), np.float32)
    documents[:, 0] = np.arange(50)
    documents[10:20, 1], documents[10:20, -1] = large, -large
    queries[:, 0], queries[:, 1], queries[:, -1] = 1, large, large
    with pytest.raises(ValueError, match=r"row 1\d is too long; its score may exceed float32"):
        search_exact(queries, [(0, documents)], k, np.arange(50, dtype=np.int32), device=device)
