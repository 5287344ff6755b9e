"""Compiled choosing: from when on, what is kept of it, and what a search does without it."""

import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from r2med.retrieve.dense.exact import exact_search

pytest.importorskip("numba")

import numba

from r2med.retrieve.dense.exact import compiled, compiled_products, compiled_shortlists, jit, product_kernels


def test_choosing_is_compiled_once_a_process_has_searched_enough(monkeypatch):
    monkeypatch.setattr(exact_search, "WORTHWHILE", 250)
    monkeypatch.setattr(exact_search, "_done", 0)
    assert [exact_search._way(100)[1].__name__ for _ in range(3)] == [
        "GroupedShortlists",
        "GroupedShortlists",
        "CompiledShortlists",
    ]


def test_everything_is_compiled_before_a_search_and_serves_all_of_them(monkeypatch):
    # A thread that compiles when the process ends aborts it; and a search would take ten seconds.
    monkeypatch.setattr(exact_search, "WORTHWHILE", 0)
    monkeypatch.setenv("R2MED_THREADS", "3")
    functions = exact_search._compiled() and jit._functions
    before = [len(function.signatures) for function in functions]
    random = np.random.default_rng(1)
    for kind, count, dimension, k, cosine in [
        (np.float32, 3000, 16, 10, False),
        (np.float16, 3000, 16, 2000, True),
        (np.float32, 1, 1, 1, True),
        (np.float16, 40, 3, 5, False),
    ]:
        documents = random.standard_normal((count, dimension)).astype(kind)
        queries = random.standard_normal((40 if count > 1 else 1, dimension)).astype(np.float32)
        ranks = np.arange(count, dtype=np.int32)
        for array in (queries, documents, ranks):
            array.flags.writeable = False
        blocks = [(at, documents[at : at + 700]) for at in range(0, count, 700)]
        exact_search.search_exact(queries, blocks, k, ranks, cosine=cosine, device="cpu")
        exact_search.search_exact(np.asfortranarray(queries)[::2], blocks[:-1], k, ranks, cosine=cosine, device="cpu")
    assert any(before)
    assert [len(function.signatures) for function in functions] == before


def test_where_no_blas_can_be_called_numpy_multiplies_and_the_rest_is_compiled(monkeypatch):
    monkeypatch.setattr(compiled, "sgemm_address", lambda: 0)
    way = compiled.compile_all()
    assert [each.__name__ for each in way] == ["Products", "CompiledShortlists"]
    monkeypatch.setattr(exact_search, "_way", lambda _: way)
    documents = np.random.default_rng(1).standard_normal((3000, 8)).astype(np.float32)
    ranks = np.arange(3000, dtype=np.int32)
    found = exact_search.search_exact(documents[:40], [(0, documents)], 5, ranks, device="cpu")
    scores = (documents[:40].astype(np.float64) @ documents.T).astype(np.float32)
    assert [set(rows.tolist()) for rows, _ in found] == [set(np.argsort(-line)[:5].tolist()) for line in scores]


def test_what_was_kept_of_other_code_is_forgotten(monkeypatch, tmp_path):
    flushed = []
    cache = SimpleNamespace(cache_path=str(tmp_path), flush=lambda: flushed.append(1))
    monkeypatch.setattr(jit, "_functions", [SimpleNamespace(_cache=cache)])
    for _ in range(3):
        jit.forget_others()
    assert len(flushed) == 1
    [note] = tmp_path.iterdir()
    note.write_text("of another version")
    jit.forget_others()
    assert len(flushed) == 2


@pytest.mark.parametrize("flush", [False, True])
def test_half_precision_is_widened_bit_for_bit(flush):
    halves = np.arange(1 << 16, dtype=np.uint16)
    halves = halves[halves & 0x7FFF < 0x7C00]  # finite
    floats = np.empty(len(halves), np.float32)
    expected = halves.view(np.float16).astype(np.float32).view(np.uint32)
    torch = pytest.importorskip("torch")
    torch.set_flush_denormal(flush)
    try:
        product_kernels.widen(halves, floats)
    finally:
        torch.set_flush_denormal(False)
    assert (floats.view(np.uint32) == expected).all()


@pytest.mark.parametrize("where", ["multiply_and_finish", "finish"])
def test_what_fails_on_another_thread_fails_the_search(monkeypatch, where):
    here, came, kernels = threading.get_ident(), threading.Event(), compiled_shortlists.kernels

    def failing(*args):
        if threading.get_ident() != here:
            came.set()
            raise MemoryError("no room")
        came.wait(30)
        return real(*args)

    monkeypatch.setattr(exact_search, "WORTHWHILE", 0)
    monkeypatch.setenv("R2MED_THREADS", "2")
    exact_search._compiled()
    real = getattr(kernels, where)
    if where == "finish":  # threads do not go on by themselves
        monkeypatch.setattr(kernels, "multiply_and_finish", lambda product, *_: product_kernels.multiply(product))
    monkeypatch.setattr(kernels, where, failing)
    documents = np.eye(600, dtype=np.float32)
    with pytest.raises(MemoryError, match="no room"):
        exact_search.search_exact(documents, [(0, documents)], 1, np.arange(600, dtype=np.int32), device="cpu")


def test_a_thread_that_goes_on_by_itself_is_waited_for(monkeypatch):
    # It has a part while helpers, and not the thread that searches, get all of what is shared after that.
    kernels, last, joined = compiled_shortlists.kernels, threading.Event(), []
    count_up = numba.njit(lambda counter: jit.fetch_add(counter, 1))

    def join(product, work, patient):
        number = product_kernels.multiply(product)
        if patient:
            last.wait(30)
            return number
        while not jit.wait(product.pieces_done, len(product.odd)):
            pass
        part = work.parts_taken[0]
        work.parts_taken[0] += 1
        joined.append(work)
        last.set()
        time.sleep(0.2)
        kernels.finish_part(work, part, 1.0)
        count_up(work.parts_done)
        return number

    def share(work, items, threads, done=None):
        if not items:
            return
        if isinstance(items[0], int):  # the last step
            helper = threading.Thread(target=lambda: [work(item) for item in items])
            helper.start()
            helper.join()
        else:
            helper = threading.Thread(target=work, args=(items[0],))
            helper.start()
            work(items[0])

    monkeypatch.setattr(exact_search, "WORTHWHILE", 0)
    monkeypatch.setenv("R2MED_THREADS", "2")
    exact_search._compiled()
    monkeypatch.setattr(kernels, "multiply_and_finish", join)
    for room in (compiled_products, compiled_shortlists):
        monkeypatch.setattr(room, "share", share)
    documents = np.eye(600, dtype=np.float32)
    found = exact_search.search_exact(documents, [(0, documents)], 1, np.arange(600, dtype=np.int32), device="cpu")
    assert [rows.tolist() for rows, _ in found] == [[row] for row in range(600)]
    assert joined[0].parts_done[0] == len(joined[0].ends)


COMPILED = """
import logging
logging.basicConfig(format="%(message)s", level=logging.INFO)
import numpy as np
from r2med.retrieve.dense.exact import exact_search
exact_search.WORTHWHILE = 0
documents = np.eye(5, dtype=np.float32)
found = exact_search.search_exact(documents, [(0, documents)], 1, np.arange(5, dtype=np.int32), device="cpu")
print([rows.tolist() for rows, _ in found], exact_search._way(1)[1].__name__)
"""


def by_numba(code="", **variables):
    done = subprocess.run(
        [sys.executable, "-c", code + COMPILED], env={**os.environ, **variables}, capture_output=True, text=True
    )
    assert done.stdout.startswith("[[0], [1], [2], [3], [4]] "), done.stderr
    return done.stdout.split()[-1], done.stderr


def test_what_was_compiled_is_kept_and_made_again_where_it_cannot_be_read(tmp_path):
    assert by_numba(NUMBA_CACHE_DIR=str(tmp_path))[0] == "CompiledShortlists"
    kept = sorted(tmp_path.rglob("*.nbi"))
    assert kept
    for path in kept:  # of another version, in which other classes are named
        version = path.read_bytes()[: path.read_bytes().index(b".") + 1]
        path.write_bytes(version + b"cr2med.retrieve.dense.exact.kernels\nNoSuchClass\n.")
    assert by_numba(NUMBA_CACHE_DIR=str(tmp_path)) == ("CompiledShortlists", "")
    assert all(b"NoSuchClass" not in path.read_bytes() for path in tmp_path.rglob("*.nbi"))


@pytest.mark.parametrize(
    ("code", "lists", "said"),
    [
        ("from numba.core import caching\ncaching.CacheImpl._locator_classes = []", "CompiledShortlists", ""),
        (
            "from numba.core import caching\n"
            "def full(*_): raise OSError(28, 'No space left on device')\n"
            "caching.IndexDataCacheFile.save = full",
            "GroupedShortlists",
            "dense search is not compiled here: OSError: [Errno 28] No space left on device\n",
        ),
        (
            "import sys\nsys.modules['numba.core'] = None",
            "GroupedShortlists",
            "dense search is not compiled here: ",
        ),
    ],
    ids=["no folder can be written to", "the disk is full", "numba does not start"],
)
def test_a_search_does_without_what_cannot_be_compiled_or_kept(code, lists, said, tmp_path):
    chosen, told = by_numba(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert chosen == lists
    assert told.startswith(said)
    assert len(told.splitlines()) == bool(said)
