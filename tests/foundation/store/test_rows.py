"""Rows in SQLite: sound ones are read back, a damaged file or a full disk is one line."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.rows import Rows

NOUN = "cache of scores"


def key(number: int) -> bytes:
    return hashlib.sha256(b"%d" % number).digest()


def rows(count: int, longest: int = 200) -> dict[bytes, bytes]:
    chance = random.Random(count)
    return {key(number): chance.randbytes(chance.randint(0, longest)) for number in range(count)}


def kept(path: Path, content: dict[bytes, bytes], *datasets: str) -> Path:
    with Rows(path, NOUN, datasets=datasets) as table:
        table.put(content)
    return path


def read(path: Path, content: dict[bytes, bytes]) -> dict[bytes, bytes]:
    with Rows(path, NOUN) as table:
        return table.get(list(content))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "rows.sqlite"


def test_rows_come_back_as_they_were(file: Path) -> None:
    content = rows(2000)
    kept(file, content)
    with Rows(file, NOUN) as table:
        assert table.get([*content, key(-1)]) == content
        table.put({key(0): b"new"})
        assert table.get([key(0)]) == {key(0): b"new"}


def test_all_rows_are_read_in_parts(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("r2med.foundation.store.rows._ROWS_AT_ONCE", 3)
    with Rows(file, NOUN) as table:
        for number in range(10):
            table.put({key(number): b"%d" % number})
        assert [value for _, value in table.items()] == [b"%d" % number for number in range(10)]


def test_rows_that_are_not_made_durable_survive_the_end_of_their_process(file: Path) -> None:
    script = f"""
import os, pathlib
from r2med.foundation.store.rows import Rows
table = Rows(pathlib.Path({str(file)!r}), "cache")
table.put({{b"k": b"first"}})
table.put({{b"k": b"second"}}, durable=False)
os._exit(0)
"""
    subprocess.run([sys.executable, "-c", script], check=True)
    assert read(file, {b"k": b""}) == {b"k": b"second"}


def test_many_threads_may_share_a_table(file: Path) -> None:
    with Rows(file, NOUN) as table:
        threads = [
            threading.Thread(target=lambda start=start: [table.put({key(start + i): b"v"}) for i in range(20)])
            for start in range(0, 100, 20)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(table.get([key(number) for number in range(100)])) == 100


Damage = Callable[[Path], None]


def no_header(path: Path) -> None:
    with path.open("r+b") as database:
        database.write(b"\xff" * 100)


def no_first_page(path: Path) -> None:
    with path.open("r+b") as database:
        database.write(b"\xff" * 4096)


def no_index(path: Path) -> None:
    """Damage the index of the keys, which every question needs; the rows themselves are whole."""
    with contextlib.closing(sqlite3.connect(path)) as sql:
        statement = "SELECT rootpage FROM sqlite_master WHERE name = 'sqlite_autoindex_rows_1'"
        (page,) = sql.execute(statement).fetchone()
    with path.open("r+b") as database:
        database.seek((page - 1) * 4096)
        database.write(b"\xff" * 4096)


def half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 + 1000)


def bad_pages(path: Path) -> None:
    chance = random.Random(7)
    pages = path.stat().st_size // 4096
    with path.open("r+b") as database:
        for page in chance.sample(range(1, pages), pages // 10):
            database.seek(page * 4096)
            database.write(chance.randbytes(4096))


def emptied(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("damage", [no_header, no_first_page, no_index, half, bad_pages, emptied])
@pytest.mark.parametrize("longest", [200, 20_000], ids=["on one page", "on several pages"])
def test_a_damaged_file_stops_the_command_and_stays_as_it_is(file: Path, damage: Damage, longest: int) -> None:
    content = rows(400, longest)
    kept(file, content)
    damage(file)
    damaged = file.read_bytes()
    for _ in range(2):
        with pytest.raises(UserError, match=r"rows\.sqlite: this cache of scores is damaged \(.*sqlite3 \S+ \.recover"):
            read(file, content)
    assert file.read_bytes() == damaged
    assert [path.name for path in file.parent.iterdir()] == ["rows.sqlite"]


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
def test_the_command_of_the_message_recovers_rows_and_labels_or_changes_nothing(file: Path) -> None:
    kept(file, rows(30), "ward")
    no_index(file)
    damaged = file.read_bytes()
    with pytest.raises(UserError) as error:
        read(file, rows(30))
    (command,) = re.findall(r"To recover its rows: (.*) \. If you delete", str(error.value))
    if subprocess.run(["bash", "-c", command], check=False, capture_output=True).returncode:
        assert file.read_bytes() == damaged  # .recover of Debian 12 fails for every file
        return
    with Rows(file, NOUN) as table:
        assert table.get(list(rows(30))) == rows(30)
        assert set(table.keys_about("ward")) == set(rows(30))


def test_rows_of_a_file_that_was_replaced_while_it_is_open_are_in_the_new_one(file: Path) -> None:
    content = rows(300)
    kept(file, content)
    with Rows(file, NOUN) as one, Rows(file, NOUN) as two:
        assert one.get(list(content)) == two.get(list(content)) == content
        kept(file.with_name("other.sqlite"), content).replace(file)
        two.put({key(-1): b"late"})
        one.put({key(-2): b"later"})
        assert two.get([key(-1), key(-2)]) == one.get([key(-1), key(-2)]) == {key(-1): b"late", key(-2): b"later"}
    assert len(read(file, {**content, key(-1): b"", key(-2): b""})) == 302


def test_a_new_file_does_not_read_the_log_of_one_that_is_gone(file: Path) -> None:
    with Rows(file, NOUN) as table:
        table.put(rows(300))
        log = file.with_name("rows.sqlite-wal").read_bytes()
    file.unlink()
    file.with_name("rows.sqlite-wal").write_bytes(log)
    assert read(file, rows(300)) == {}
    assert read(kept(file, rows(3)), rows(3)) == rows(3)


def test_a_full_disk_is_told_with_its_folder_and_what_to_do(small_disk: Path) -> None:
    file = small_disk / "rows.sqlite"
    with Rows(file, NOUN) as table:
        table.put({b"kept": b"value"})
        with pytest.raises(
            UserError, match=rf"the disk that holds {small_disk} is full: free some space, or set R2MED_"
        ):
            table.put({key(number): b"x" * 4000 for number in range(200)})
        assert table.get([b"kept"]) == {b"kept": b"value"}
    assert read(file, {b"kept": b"", key(0): b""}) == {b"kept": b"value"}


def test_a_file_that_may_not_be_written_is_told(small_disk: Path) -> None:
    kept(small_disk / "rows.sqlite", rows(3))
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(UserError, match=r"cache of scores cannot be written .* set R2MED_HOME"):
        Rows(small_disk / "rows.sqlite", NOUN)


def test_a_table_of_other_columns_is_told_and_left_alone(file: Path) -> None:
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE rows (something TEXT)")
    database.close()
    with Rows(file, NOUN) as table, pytest.raises(UserError, match=r"rows.sqlite: this cache of scores cannot be used"):
        table.get([b"k"])


def test_a_row_that_is_removed_leaves_no_byte_even_while_others_have_the_file_open(file: Path) -> None:
    with Rows(file, NOUN) as other:
        other.put({key(number): b"patient number %d " % number * 400 for number in range(50)})
        with Rows(file, NOUN) as table:
            table.remove([key(number) for number in range(49)])
            left = b"".join(path.read_bytes() for path in file.parent.glob("rows.sqlite*"))
    assert b"patient number 48" not in left and b"patient number 49" in left
