"""Noted reads: everything that a block reads from a store is known, and what a pack needs is never made."""

from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store
from r2med.foundation.store.reads import LIBRARIES, current_reads, noted_reads
from r2med.foundation.store.rows import Rows

RUN, INDEX = "0" * 32, "1" * 32


def build(folder: Path) -> dict[str, int]:
    (folder / "x.npy").write_bytes(b"x")
    return {}


def test_what_is_read_inside_the_block_is_noted(store: Store, tmp_path: Path) -> None:
    store.make("run", RUN, build)
    with Rows(tmp_path / "t.sqlite", "table") as rows:
        rows.put({b"k": b"v", b"other": b"v"})
    with noted_reads(["run"]) as reads, noted_reads() as inner:
        store.make("run", RUN, build)
        store.make("bm25-postings", INDEX, build)  # an index may be made: a pack does not hold it
        with Rows(tmp_path / "t.sqlite", "table") as rows:
            rows.get([b"k"])
    store.make("vectors", RUN, build)
    assert [*reads.artefacts] == [*inner.artefacts] == [("run", RUN), ("bm25-postings", INDEX)]
    assert reads.rows == {tmp_path / "t.sqlite": {b"k"}}
    assert current_reads() == ()


def test_the_versions_behind_what_is_read_or_made_are_known(store: Store) -> None:
    store.make("run", RUN, lambda folder: {"versions": {LIBRARIES[0]: ["1", 2], "numpy": ["3"]}})
    with noted_reads() as reads:
        store.get("run", RUN)
        store.make("vectors", RUN, lambda folder: {"versions": {LIBRARIES[0]: ["0"]}})
        store.make("vectors", INDEX, lambda folder: {"versions": "nonsense"})
    assert reads.versions == {LIBRARIES[0]: ["0", "1"]}


def test_what_a_pack_would_hold_is_not_made(store: Store, tmp_path: Path) -> None:
    with noted_reads(["vectors"]), pytest.raises(UserError, match="vectors 00000000 is missing in this store"):
        store.make("vectors", RUN, build)
    assert store.get("vectors", RUN) is None
    with (
        noted_reads(["vectors"]),
        Rows(tmp_path / "t.sqlite", "table") as rows,
        pytest.raises(UserError, match=r"2 of 2 rows of t\.sqlite are missing in this store"),
    ):
        rows.get([b"a", b"b"])
