"""`r2med cache verify`: rot is found, named and mended."""

import os
import sqlite3
from pathlib import Path

import pytest
import typer

from r2med.cli.cache import verify
from r2med.store import Store, default_store
from r2med.store.rows import Rows


@pytest.fixture
def filled() -> Store:
    """The store of the user, with two artefacts and a table of rows."""
    store = default_store()
    for key in ("first", "second"):
        store.make("index", key, lambda folder: (folder / "file").write_bytes(b"content") and None)
    with Rows(store.root / "chat" / "journal.sqlite", "journal") as rows:
        rows.put({b"k": b"v", b"l": b"w"})
    return store


def rot(path: Path) -> None:
    """Change a file behind its times."""
    before = path.stat()
    path.write_bytes(path.read_bytes().swapcase())
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_sound_store_is_counted(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    verify()
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{filled.root}: 3 artefacts are sound, 0 damaged; ")


def test_what_is_damaged_is_named_and_removed_and_the_exit_code_is_1(
    filled: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    rot(filled.root / "index" / "second" / "file")
    with pytest.raises(typer.Exit) as ended:
        verify()
    assert ended.value.exit_code == 1
    damaged, summary = capsys.readouterr().out.splitlines()
    assert damaged.startswith(f"damaged: {filled.root / 'index' / 'second'}: file was altered (it was removed, and is")
    assert "2 artefacts are sound, 1 damaged" in summary
    assert not (filled.root / "index" / "second").exists()
    verify()
    assert "2 artefacts are sound, 0 damaged" in capsys.readouterr().out


def test_damaged_rows_are_named_and_the_others_kept(filled: Store, capsys: pytest.CaptureFixture[str]) -> None:
    journal = filled.root / "chat" / "journal.sqlite"
    database = sqlite3.connect(journal)
    with database:
        database.execute("UPDATE rows SET value = x'00' WHERE key = x'6b'")
    database.close()
    with pytest.raises(typer.Exit):
        verify()
    assert "journal.sqlite: 1 of 2 rows are damaged (what can be read of it is kept" in capsys.readouterr().out
    with Rows(journal, "journal") as rows:
        assert rows.get([b"k", b"l"]) == {b"l": b"w"}
