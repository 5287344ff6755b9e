"""Tables that were damaged on their way, or are far too wide, end in one line; odd ones lose nothing."""

from __future__ import annotations

import json
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2med.data.tables.importing import plan_import
from r2med.data.tables.table import MAX_COLUMNS
from r2med.foundation.core.errors import UserError
from support.facts import each_states, error_states


def edited_workbook(path: Path, edit: Callable[[str, bytes], bytes]) -> Path:
    """Write a workbook of ten rows, each of its parts changed by `edit(name, content)`."""
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    for row in (("id", "note"), *((n, f"A note about the cough of patient {n}.") for n in range(1, 11))):
        book.active.append(row)
    plain = path.with_name("plain.xlsx")
    book.save(plain)
    with zipfile.ZipFile(plain) as old, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            new.writestr(name, edit(name, old.read(name)))
    return path


def test_wrong_dimensions_of_a_sheet_lose_no_rows(tmp_path: Path) -> None:
    def edit(name: str, content: bytes) -> bytes:
        return content.replace(b'<dimension ref="A1:B11"', b'<dimension ref="A1:A1"')

    path = edited_workbook(tmp_path / "short.xlsx", edit)
    assert plan_import([path]).counts["documents"] == 10


def test_characters_that_excel_escapes_are_read(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for row in (("id", "note"), ("a", "A cough._x000D_\nNo fever."), ("b", "#N/A")):
        book.active.append(row)
    book.save(tmp_path / "notes.xlsx")
    plan_import([tmp_path / "notes.xlsx"]).write(tmp_path / "mine")
    assert json.loads((tmp_path / "mine" / "corpus.jsonl").read_text()) == {"id": "a", "text": "A cough.\nNo fever."}


def test_a_table_of_200_000_columns_is_refused(tmp_path: Path) -> None:
    wide = ",".join(f"c{n}" for n in range(200_000))
    (tmp_path / "wide.csv").write_text(f"{wide}\n{wide}\n")
    with error_states("wide.csv", MAX_COLUMNS, "columns"):
        plan_import([tmp_path / "wide.csv"])


def test_a_cell_of_200_000_characters_is_read_with_its_neighbours(tmp_path: Path) -> None:
    letter = "A long letter about a cough. " * 7000
    assert len(letter) > 131_072
    (tmp_path / "notes.csv").write_text(f'note_id,note\nn1,"{letter}"\nn2,"A cough, again."\n')
    plan_import([tmp_path / "notes.csv"]).write(tmp_path / "mine")
    rows = [json.loads(line) for line in (tmp_path / "mine" / "corpus.jsonl").read_text().splitlines()]
    assert rows == [{"id": "n1", "text": letter.strip()}, {"id": "n2", "text": "A cough, again."}]


@pytest.mark.parametrize(
    ("name", "content", "facts"),
    [
        (
            "a.csv",
            "id;text\r\n1;Ein Husten.\r\n".encode("utf-16")[:-1],
            ["a.csv:2", "UTF-16"],
        ),
        (
            "a.csv",
            "id;text\r\n1;Ein \ud800 Husten.\r\n".encode("utf-16", "surrogatepass"),
            ["a.csv:2", "damaged"],
        ),
        (
            "a.json",
            b'[{"id": "1", "text": "half \\ud800 a sign"}]',
            ["a.json:1", "'text'", "character"],
        ),
        (
            "a.jsonl",
            b'{"id": "1", "text": "half \\ud800 a sign"}\n',
            ["a.jsonl:1", "'text'", "character"],
        ),
        ("a.jsonl", b'{"id": "1", "te\\ud800xt": "half a sign"}\n', ["'te\\ud800xt'", "character"]),
        (
            "a.json",
            b'[{"id": "1", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]",
            ["a.json", "recursion"],
        ),
        ("a.jsonl", b'{"id": "1", "text": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n", ["a.jsonl", "nested"]),
    ],
)
def test_damaged_text_is_named_by_its_line(tmp_path: Path, name: str, content: bytes, facts: list[str]) -> None:
    (tmp_path / name).write_bytes(content)
    with error_states(*facts):
        plan_import([tmp_path / name]).write(tmp_path / "mine")
    assert not (tmp_path / "mine").exists()


def test_bad_utf8_in_parquet_is_one_line(tmp_path: Path) -> None:
    buffers = pa.array([b"A cough.", b"An itch \xff."], pa.binary()).buffers()
    texts = pa.Array.from_buffers(pa.string(), 2, buffers)
    pq.write_table(pa.table({"id": ["1", "2"], "text": texts}), tmp_path / "a.parquet")
    with error_states("a.parquet", "utf-8"):
        plan_import([tmp_path / "a.parquet"]).write(tmp_path / "mine")


def test_of_three_imports_into_one_folder_one_writes_and_the_others_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.csv").write_text("id,note\na,A cough since May.\nb,An itch since June.\n")
    together = threading.Barrier(3)
    monkeypatch.setattr("r2med.data.tables.importing.sync", lambda folder: None)
    said: list[str] = []

    def write() -> None:
        plan = plan_import([tmp_path / "notes.csv"])
        together.wait()
        try:
            plan.write(tmp_path / "mine")
            said.append("written")
        except UserError as error:
            said.append(str(error))

    threads = [threading.Thread(target=write) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said)[2] == "written"
    each_states(sorted(said)[:2], ["mine", "exists"], ["mine", "exists"])
