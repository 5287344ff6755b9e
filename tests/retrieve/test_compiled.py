"""Compiled choosing: from when on, what is kept of it, and what a search does without it."""

import os
import subprocess
import sys
import threading
import time
import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from r2med.retrieve.dense.exact import exact_search

pytest.importorskip("numba")

from r2med.retrieve.dense.exact import (
    compiled,
    compiled_shortlists,
    deciding_kernels,
    jit,
    product_kernels,
    team,
    team_kernels,
)
from r2med.retrieve.dense.exact.arrays import Asked
from r2med.retrieve.dense.exact.rescoring import Rescorer
from r2med.retrieve.dense.exact.rounding import Rounding
from r2med.retrieve.dense.exact.workspace import Workspace


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


@pytest.mark.parametrize("flush", [False, True])
def test_a_vector_of_the_smallest_numbers_is_not_taken_for_one_of_length_0(flush):
    vectors, factors = np.float32([3, 4, 0, 0, 1e-40, 0, -0.0, 0]), np.full(4, np.nan, np.float32)
    torch = pytest.importorskip("torch")
    torch.set_flush_denormal(flush)
    try:
        assert not product_kernels._find_factors(vectors, factors)
    finally:
        torch.set_flush_denormal(False)
    np.testing.assert_array_equal(factors, np.float32([0.2, 1, np.nan, 1]))


@pytest.fixture
def threads(monkeypatch):
    """Three threads that search by what is compiled, and nothing left by other searches."""
    monkeypatch.setattr(exact_search, "WORTHWHILE", 0)
    monkeypatch.setenv("R2MED_THREADS", "3")
    exact_search._compiled()
    exact_search._spare.clear()
    team._idle.clear()
    yield
    team._idle.clear()


DOCUMENTS = np.random.default_rng(1).standard_normal((700, 8)).astype(np.float32)
NEAREST = [set(line[:5].tolist()) for line in np.argsort(-(DOCUMENTS.astype(np.float64) @ DOCUMENTS.T))]


def search(documents=DOCUMENTS, k=5, blocks=None, **settings):
    ranks = np.arange(len(documents), dtype=np.int32)
    blocks = [(0, documents)] if blocks is None else blocks
    found = exact_search.search_exact(documents, blocks, k, ranks, device="cpu", **settings)
    return [set(rows.tolist()) for rows, _ in found]


def idle_team():
    """The only team; one whose thread had no core at the end of a search is not kept, so others may be needed."""
    assert soon(lambda: team._idle or not search())
    [only] = team._idle
    return only


def soon(is_so):
    """Whether something is so within half a minute: a thread may have no core."""
    return any(is_so() or time.sleep(0.01) for _ in range(3000))


def test_what_fails_on_any_thread_fails_the_search(monkeypatch, threads):
    nowhere = Rescorer(DOCUMENTS, cosine=False).addresses()
    with monkeypatch.context() as patch:
        patch.setattr(Rescorer, "addresses", lambda _: nowhere)
        patch.setattr(Rescorer, "_by_block", lambda *_: [][0])
        with pytest.raises(IndexError):
            search()
    assert search() == NEAREST


def test_a_part_that_failed_for_once_is_done_again(monkeypatch, threads):
    def once(product, make_work, *args):
        done.append(real(product, make_work, *args))
        make_work().failed[:] = True
        make_work().deciding.found.rows[:] = -1
        make_work().deciding.lists.scores[:, :3] += 1  # what was decided is not believed
        return done[-1]

    real, done = compiled_shortlists.multiply_and_choose, []
    monkeypatch.setattr(compiled_shortlists, "multiply_and_choose", once)
    assert search() == NEAREST
    assert done == [True]


def test_a_part_that_fails_after_blocks_were_let_go_keeps_what_was_settled(monkeypatch, threads):
    def fails(product, make_work, *args):
        done.append(real(product, make_work, *args))
        make_work().failed[:] = True
        return done[-1]

    real, done = compiled_shortlists.multiply_and_choose, []
    monkeypatch.setattr(compiled_shortlists, "multiply_and_choose", fails)
    few = DOCUMENTS[:60]
    nearest = [set(line[:5].tolist()) for line in np.argsort(-(few.astype(np.float64) @ few.T))]
    assert search(few, blocks=[(0, few[:30]), (30, few[30:])], memory=1 << 10) == nearest
    assert len(done) > 1


def test_ties_are_sought_again_if_scores_are_found_to_be_further_off_than_was_thought():
    """Sampled scores are right, one of two near ones is off, and so two others are near that did not seem so."""
    exact_search._compiled()
    count, scores = 120, np.linspace(1, 0.5, 120, dtype=np.float32)
    scores[[51, 76]] = scores[[50, 75]] - np.float32(1e-4)
    vectors, fast = np.outer(scores, np.float32([1, 0, 0, 0])), scores.copy()
    fast[50] = fast[51] * np.float32(1 + 2e-7)
    fast[[75, 76]] = fast[[76, 75]]
    order = np.argsort(-fast, kind="stable")
    rescorer = Rescorer(np.float32([[1, 0, 0, 0]]), cosine=False)
    rescorer.hold(0, vectors)
    asked = Asked(rescorer.queries, 100, np.arange(count, dtype=np.int32), cosine=False, memory=1 << 20)
    lists = compiled_shortlists.CompiledShortlists(asked, Rounding(rescorer), rescorer, Workspace(), threads=1)
    work = lists.work(fast[None], np.arange(count, dtype=np.int32), last=True).deciding._replace(sampled=8)
    lists.rows[0, :count], lists.scores[0, :count], lists.exact[0, :count] = order, fast[order], False
    lists.lengths[0] = count
    work.margins[:], work.side.unrelated[:] = 1e-3, 0.5
    deciding_kernels.decide(work, 0, 1)
    assert set(order[np.flatnonzero(lists.exact[0, :100])].tolist()) == {0, 14, 28, 42, 50, 51, 56, 70, 75, 76, 84, 99}
    assert work.found.rows[0, np.argsort(-work.found.scores[0], kind="stable")].tolist() == list(range(100))


@pytest.mark.parametrize("call", [1, 1 << 33])
def test_searches_are_right_whatever_the_threads_do_when(monkeypatch, threads, call):
    monkeypatch.setattr(team, "CALL", call)  # Ctrl-C after each piece
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for count in ("2", "16", "1") * 30:
            monkeypatch.setenv("R2MED_THREADS", count)
            assert search() == NEAREST
            assert search(memory=1 << 14) == NEAREST  # in many batches
    finally:
        sys.setswitchinterval(interval)


def test_searches_at_the_same_time_have_teams_of_their_own(threads):
    found = []
    searches = [threading.Thread(target=lambda: found.extend(search() for _ in range(20))) for _ in range(4)]
    for each in searches:
        each.start()
    for each in searches:
        each.join()
    assert found == [NEAREST] * 80
    assert len(team._idle) <= 4


def test_a_search_that_is_stopped_stops_its_threads(monkeypatch, threads):
    def stop(*_):
        raise KeyboardInterrupt

    search()
    only = idle_team()
    with monkeypatch.context() as patch:
        patch.setattr(compiled_shortlists.CompiledShortlists, "work", stop)
        with pytest.raises(KeyboardInterrupt):
            search(np.eye(3000, dtype=np.float32))
    assert soon(lambda: not only._desk.idle[0])
    assert only._desk.open[0] == 0
    assert search() == NEAREST


def test_threads_end_with_their_team_and_hold_nothing_of_a_search(threads):
    vectors = DOCUMENTS.copy()
    gone = weakref.ref(vectors)
    search(blocks=[(0, vectors)])
    search()
    del vectors
    assert soon(lambda: gone() is None)
    ended = [weakref.ref(cell) for cell in idle_team()._cells]
    assert len(ended) == 2
    team._idle.clear()
    assert soon(lambda: not any(cell() is not None for cell in ended))


def test_a_team_is_as_large_as_there_is_work_and_as_the_system_allows(monkeypatch, threads):
    monkeypatch.setenv("R2MED_THREADS", "900")
    assert search(np.eye(1, dtype=np.float32)) == [{0}]
    assert not idle_team()._cells

    def refuse(*_):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(team._thread, "start_new_thread", refuse)
        assert search() == NEAREST
    assert not idle_team()._cells


def test_threads_of_another_process_are_not_told_anything():
    cell = team._cell()
    team._dismiss([cell], os.getpid() + 1)
    assert cell[team_kernels.TOLD] == 0
    team._dismiss([cell], os.getpid())
    assert cell[team_kernels.TOLD] < 0


def test_memory_is_left_to_the_next_search_unless_it_is_much_or_the_search_failed(threads):
    search(memory=1 << 30)
    [left] = exact_search._spare
    search(memory=1 << 30)
    assert exact_search._spare == [left]
    broken = DOCUMENTS.copy()
    broken[3] = np.nan
    with pytest.raises(ValueError, match="row 3 has NaN"):
        search(blocks=[(0, broken)])
    assert not exact_search._spare
    search(memory=1 << 14)
    assert not exact_search._spare


def test_what_was_found_is_not_settled_again(monkeypatch, threads):
    monkeypatch.setattr(compiled_shortlists.CompiledShortlists, "settle", lambda _: [][0])
    assert search(memory=40_000) == NEAREST  # more than half of it are held


def test_a_forked_process_has_threads_of_its_own(threads):
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("[2]\n[2]\n", 0), done.stderr


FORKED = """
import os
os.environ["R2MED_THREADS"] = "3"
import numpy as np
from r2med.retrieve.dense.exact import exact_search, team
exact_search.WORTHWHILE = 0
documents = np.eye(40, dtype=np.float32)
def search():
    while True:
        found = exact_search.search_exact(documents, [(0, documents)], 1, np.arange(40, dtype=np.int32), device="cpu")
        assert [rows.tolist() for rows, _ in found] == [[row] for row in range(40)]
        if team._idle:  # no thread was late
            break
    print([len(each._cells) for each in team._idle], flush=True)
search()
child = os.fork()
if not child:
    search()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""

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
        path.write_bytes(version + b"cr2med.retrieve.dense.exact.choosing_kernels\nNoSuchClass\n.")
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
