"""Every byte of a store is checked, and what is damaged is named."""

from __future__ import annotations

import os
import sqlite3

import pytest

from r2med.foundation.store import Store
from r2med.foundation.store.holdings import verify_store
from r2med.foundation.store.rows import Rows


@pytest.fixture
def filled(store: Store) -> Store:
    for key in ("a", "b"):
        store.make("index", key, lambda folder: (folder / "file").write_bytes(b"content") and None)
    store.remember("note", {})
    store.scratch()
    with Rows(store.root / "chat" / "journal.sqlite", "journal") as rows:
        rows.put({b"k": b"v", b"l": b"w"})
    return store


def test_a_sound_store_has_no_faults(filled: Store) -> None:
    seen = [(checked.kind, checked.path.name, checked.fault) for checked in verify_store(filled)]
    assert seen == [("index", "a", ""), ("index", "b", ""), ("rows", "journal.sqlite", "")]
    assert all(checked.size > 0 for checked in verify_store(filled))


def test_rot_behind_a_files_times_is_found_and_mended(filled: Store) -> None:
    path = filled.root / "index" / "b" / "file"
    before = path.stat()
    path.write_bytes(b"CONTENT")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert [checked.fault for checked in verify_store(filled)] == ["", "file was altered", ""]
    assert [checked.fault for checked in verify_store(filled, mend=True)] == ["", "file was altered", ""]
    assert [checked.path.name for checked in verify_store(filled)] == ["a", "journal.sqlite"]


def test_damaged_rows_and_databases_are_named(filled: Store) -> None:
    journal = filled.root / "chat" / "journal.sqlite"
    with sqlite3.connect(journal) as database:
        database.execute("UPDATE rows SET value = x'00' WHERE key = x'6b'")
    database.close()
    assert list(verify_store(filled))[-1].fault == "1 of 2 rows are damaged"
    journal.write_bytes(b"no database" * 999)
    assert list(verify_store(filled))[-1].fault.startswith(
        f"file is not a database. To recover its rows: sqlite3 {journal}"
    )
