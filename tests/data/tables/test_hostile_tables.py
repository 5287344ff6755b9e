"""Tables made to harm, or damaged on their way, end in one line, and in bounded memory and time."""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from r2med.data.tables.importing import plan_import
from r2med.data.tables.table import MAX_CELL_CHARACTERS, MAX_COLUMNS
from r2med.foundation.core.errors import UserError
from support.facts import each_states, error_states, states
from support.processes import environment

MEMORY = 2 << 30
"""Bytes of address space that an import of a hostile file gets; the interpreter and its libraries take most of it."""

IMPORT = """
import sys
from r2med.data.tables.importing import plan_import
from r2med.foundation.core.errors import UserError
try:
    plan_import([sys.argv[1]]).write(__import__("pathlib").Path("mine"))
except UserError as error:
    print(error)
"""


def in_little_memory(path: Path) -> str:
    """Return what an import of a file prints in a process whose memory and time are limited."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (300, 300))

    ended = subprocess.run(
        [sys.executable, "-c", IMPORT, path.name],
        cwd=path.parent,
        env={**environment(), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stderr == ""
    return ended.stdout.strip()


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


def sheet_with(rows: bytes) -> Callable[[str, bytes], bytes]:
    return lambda name, content: (
        content.replace(b"</sheetData>", rows + b"</sheetData>") if "sheet1" in name else content
    )


def test_a_row_number_beyond_excels_last_ends_the_import(tmp_path: Path) -> None:
    row = b'<row r="1000000000000"><c r="A1000000000000"><v>1</v></c></row>'
    said = in_little_memory(edited_workbook(tmp_path / "far.xlsx", sheet_with(row)))
    states(said, "far.xlsx", "sheet Notes", "row 1048577", "1,048,576")


def test_a_small_workbook_that_unpacks_to_a_hundred_megabytes_is_refused(tmp_path: Path) -> None:
    row = b'<row><c t="inlineStr"><is><t>' + b"a cough " * 125_000 + b"</t></is></c></row>"
    path = edited_workbook(tmp_path / "bomb.xlsx", sheet_with(row * 100))
    assert path.stat().st_size < 2_000_000
    said = in_little_memory(path)
    states(said, "bomb.xlsx", "xl/worksheets/sheet1.xml", "100 MB", "CSV")


@pytest.mark.slow
def test_a_row_of_millions_of_empty_cells_takes_little_memory(tmp_path: Path) -> None:
    # Words that hardly repeat keep the ratio of packing as in a real workbook.
    words = random.Random(1).randbytes(300_000).hex().encode()
    row = b"<!--" + words + b"--><row>" + b"<c/>" * 5_000_000 + b"</row>"
    assert in_little_memory(edited_workbook(tmp_path / "row.xlsx", sheet_with(row))) == ""
    assert len((tmp_path / "mine" / "corpus.jsonl").read_text().splitlines()) == 10


def test_styles_of_ten_megabytes_are_refused(tmp_path: Path) -> None:
    def edit(name: str, content: bytes) -> bytes:
        return content.replace(b"</fonts>", b"<font/>" * 1_500_000 + b"</fonts>") if "styles" in name else content

    said = in_little_memory(edited_workbook(tmp_path / "styles.xlsx", edit))
    states(said, "styles.xlsx", "xl/styles.xml", "unpacks")


def test_rows_as_wide_as_excel_allows_end_the_import(tmp_path: Path) -> None:
    rows = b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (n, n) for n in range(12, 5000))
    said = in_little_memory(edited_workbook(tmp_path / "wide.xlsx", sheet_with(rows)))
    states(said, "wide.xlsx", "sheet Notes", "row 12", "16,384", "2,000")


def test_a_number_that_is_none_far_down_in_a_sheet_is_named_by_its_row(tmp_path: Path) -> None:
    rows = b"".join(b'<row r="%d"><c r="A%d"><v>%d</v></c></row>' % (n, n, n) for n in range(12, 700))
    bad = b'<row r="700"><c r="A700"><v>1..2</v></c></row>'
    edited_workbook(tmp_path / "bad.xlsx", sheet_with(rows + bad))
    with error_states("bad.xlsx", "sheet Notes", "row 700", "'1..2'"):
        plan_import([tmp_path / "bad.xlsx"])


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
    states(in_little_memory(tmp_path / "wide.csv"), "wide.csv", MAX_COLUMNS, "columns")


def test_a_cell_of_200_000_characters_is_read_with_its_neighbours(tmp_path: Path) -> None:
    letter = "A long letter about a cough. " * 7000
    assert len(letter) > 131_072
    (tmp_path / "notes.csv").write_text(f'note_id,note\nn1,"{letter}"\nn2,"A cough, again."\n')
    plan_import([tmp_path / "notes.csv"]).write(tmp_path / "mine")
    rows = [json.loads(line) for line in (tmp_path / "mine" / "corpus.jsonl").read_text().splitlines()]
    assert rows == [{"id": "n1", "text": letter.strip()}, {"id": "n2", "text": "A cough, again."}]


@pytest.mark.parametrize("quote", ['"', ""])
def test_a_cell_or_line_without_an_end_is_refused(tmp_path: Path, quote: str) -> None:
    with (tmp_path / "endless.csv").open("w") as file:
        file.write(f"id,note\na,{quote}")
        for _ in range(64):
            file.write("a cough\n " * (1 << 17) if quote else "a cough  " * (1 << 17))
    states(
        in_little_memory(tmp_path / "endless.csv"), "endless.csv:2", "cell" if quote else "line", MAX_CELL_CHARACTERS
    )


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
            ["a.json", "nested"],
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
    with error_states("a.parquet", "UTF-8"):
        plan_import([tmp_path / "a.parquet"]).write(tmp_path / "mine")


def test_of_three_imports_into_one_folder_one_writes_and_the_others_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.csv").write_text("id,note\na,A cough since May.\nb,An itch since June.\n")
    monkeypatch.setattr("r2med.foundation.store.files.process_name", lambda: f"{os.getpid()}-{threading.get_ident()}")
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
