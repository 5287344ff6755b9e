"""Compiled choosing: from when on, what is kept of it, and what a search does without it."""

import os
import subprocess
import sys

import pytest

from r2med.retrieve.dense import exact

pytest.importorskip("numba")


def test_choosing_is_compiled_once_a_process_has_searched_enough(monkeypatch):
    monkeypatch.setattr(exact, "WORTHWHILE", 250)
    monkeypatch.setattr(exact, "_done", 0)
    assert [exact._way(100)[1].__name__ for _ in range(3)] == [
        "GroupedShortlists",
        "GroupedShortlists",
        "CompiledShortlists",
    ]


COMPILED = """
import logging
logging.basicConfig(format="%(message)s", level=logging.INFO)
import numpy as np
from r2med.retrieve.dense import exact
exact.WORTHWHILE = 0
documents = np.eye(5, dtype=np.float32)
found = exact.search_exact(documents, [(0, documents)], 1, np.arange(5, dtype=np.int32), device="cpu")
print([rows.tolist() for rows, _ in found], exact._way(1)[1].__name__)
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
        path.write_bytes(version + b"cr2med.retrieve.dense.kernels\nNoSuchClass\n.")
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
