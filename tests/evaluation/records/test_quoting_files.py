"""Files that quote the texts of a dataset are found in any format, also inside compressed files."""

from __future__ import annotations

import gzip
import html
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2med.evaluation.records import quoting_files as module
from r2med.evaluation.records.quoting_files import quoting_files, text_hashes

NOTE = 'The patient said "my knee hurts" on 3 May.\nÄrztin Müller found fluid, drained it and sent the sample away.'
QUOTED = "knee hurts on 4 May, Ärztin Müller found fluid and more"
"""A part of the note with other digits and marks."""
OTHER = "The harbour has forty boats, and each of them is painted in another colour every second summer."


def zipped(text: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.gz", gzip.compress(text.encode()))
    return file.getvalue()


def parquet(text: str) -> bytes:
    file = io.BytesIO()
    pq.write_table(pa.table({"text": [text]}), file, compression="zstd")
    return file.getvalue()


def database(text: str) -> bytes:
    with sqlite3.connect(":memory:") as sql:
        sql.execute("create table t (v text)")
        sql.execute("insert into t values (?)", [text])
        sql.commit()
        return sql.serialize()


FORMATS: dict[str, Callable[[str], bytes]] = {
    "plain": str.encode,
    "json": lambda text: json.dumps({"text": text}).encode(),
    "json inside json": lambda text: json.dumps(json.dumps({"text": text})).encode(),
    "html": lambda text: html.escape(text).replace("found", '<mark class="both">found</mark>').encode(),
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip inside zip": zipped,
    "parquet": parquet,
    "sqlite": database,
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("text", [NOTE, QUOTED])
def test_a_quotation_is_found_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "quoting").write_bytes(FORMATS[name](f"Before. {text} After."))
    (tmp_path / "other").write_bytes(FORMATS[name](OTHER))
    found = quoting_files([tmp_path], text_hashes(["short", NOTE]))
    assert (found.quoting, found.unread) == ((tmp_path / "below" / "quoting",), ())


def test_a_quotation_on_the_border_of_two_blocks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 1000)
    monkeypatch.setattr(module, "OVERLAP", 200)
    file = tmp_path / "long"
    for before in range(880, 1000, 7):
        file.write_text("1" * before + NOTE + "1" * 500)
        assert quoting_files([tmp_path], text_hashes([NOTE])).quoting == (file,)


def test_a_file_that_cannot_be_read_to_its_end_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 1000)
    monkeypatch.setattr(module, "MAX_BYTES", 5000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(b"0" * 9000))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(OTHER.encode())[:-9])
    found = quoting_files([tmp_path], text_hashes([NOTE]))
    assert [path.name for path in found.unread] == ["bomb.gz", "cut.gz"]


def test_folders_that_are_left_out_are_not_searched(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    for file in (tmp_path / "store" / "a", tmp_path / "b", tmp_path / "c"):
        file.write_text(NOTE)
    found = quoting_files([tmp_path, tmp_path], text_hashes([NOTE]), [tmp_path / "store", tmp_path / "b"])
    assert found.quoting == (tmp_path / "c",)


def test_short_texts_are_not_looked_for() -> None:
    assert not len(text_hashes(["gout", "x" * 31])) and len(text_hashes(["x" * 32])) == 1
