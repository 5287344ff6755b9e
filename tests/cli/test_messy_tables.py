"""Tables as hospitals and labs export them, in many languages, become exactly the dataset that they mean, or an error.

Each file in `messy/` is a case. `== NAME` begins a file, with its encoding behind it. `== NAME [SHEET]` begins a sheet
of a workbook with tabs between its cells; a cell after `=` is a value of JSON, and `hidden=C,3` hides a column and a
row. `$` lines are words of the command. After `=>` comes what must result:

- the lines of corpus, query and qrels (a line of qrels that ends with `?` may be missing);
- `note`: a part of each note that is shown, or `says`: texts that must be shown, while other notes may be;
- `error`: the whole message, or `refused`: texts that the message must contain. A case that has a dataset and
  `refused` may end either way: it must not become another dataset.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import openpyxl
import pytest

from support.by_day import some_by_day
from support.fork_server import Command

CASES = sorted((Path(__file__).parent / "messy").glob("*.txt"))


def sections(case: Path) -> tuple[list[str], dict[str, str], dict[str, list[str]]]:
    """Return the words of the command, the content of each file, and what must result, by its kind."""
    words: list[str] = []
    files: dict[str, str] = {}
    expected: dict[str, list[str]] = defaultdict(list)
    into: list[str] = []
    parts: dict[str, list[str]] = {}
    for line in case.read_text(encoding="utf-8").splitlines():
        if line.startswith("$ "):
            words += line[2:].split(" ")
        elif line.startswith("== "):
            into = parts.setdefault(line[3:], [])
        elif line.startswith("=> "):
            kind, _, rest = line[3:].partition(" ")
            into = expected[kind]
            into += [rest] if rest else []
        elif not line.startswith("# "):
            into.append(line)
    files = {name: "\n".join(lines).strip("\n") + "\n" for name, lines in parts.items()}
    return words, files, {kind: [line for line in lines if line] for kind, lines in expected.items()}


def write_files(folder: Path, files: dict[str, str]) -> list[str]:
    books: dict[str, list[tuple[str, list[list[str]], list[str]]]] = defaultdict(list)
    names = []
    for title, content in files.items():
        name, _, rest = title.partition(" ")
        names.append(name)
        if rest.startswith("["):
            sheet, _, hidden = rest[1:].partition("]")
            rows = [line.split("\t") for line in content.removesuffix("\n").split("\n")]
            books[name].append((sheet, rows, hidden.strip().removeprefix("hidden=").split(",")))
        else:
            encoding = rest if rest not in ("", "text") else "utf-8"
            (folder / name).write_bytes(encoded(content.replace("\n", "\r\n"), encoding))
    for name, sheets in books.items():
        (write_ods if name.endswith(".ods") else write_xlsx)(folder / name, sheets)
    return list(dict.fromkeys(names))


def write_xlsx(path: Path, sheets: list[tuple[str, list[list[str]], list[str]]]) -> None:
    book = openpyxl.Workbook()
    for title, rows, hidden in sheets:
        sheet = book.create_sheet(title)
        for cells in rows:
            sheet.append([excel_value(cell) for cell in cells])
        for part in filter(None, hidden):
            (sheet.row_dimensions[int(part)] if part.isdigit() else sheet.column_dimensions[part]).hidden = True
    book.remove(book.worksheets[0])
    with path.open("wb") as file:
        book.save(file)


ODS = "application/vnd.oasis.opendocument.spreadsheet"
NAMESPACES = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
)


def write_ods(path: Path, sheets: list[tuple[str, list[list[str]], list[str]]]) -> None:
    tables = ""
    for title, rows, hidden in sheets:
        collapsed = dict.fromkeys(hidden, ' table:visibility="collapse"')
        columns = "".join(f"<table:table-column{collapsed.get(chr(65 + i), '')}/>" for i in range(len(rows[0])))
        lines = ""
        for number, cells in enumerate(rows, 1):
            inner = "".join(
                f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
                for cell in cells
            )
            lines += f"<table:table-row{collapsed.get(str(number), '')}>{inner}</table:table-row>"
        tables += f'<table:table table:name="{escape(title)}">{columns}{lines}</table:table>'
    content = f"""<?xml version="1.0" encoding="UTF-8"?><office:document-content {NAMESPACES} office:version="1.2">
<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body></office:document-content>"""
    manifest = f"""<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0">
<manifest:file-entry manifest:full-path="/" manifest:media-type="{ODS}"/>
<manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>"""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", ODS)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", manifest)


def encoded(content: str, encoding: str) -> bytes:
    if encoding != "mixed":
        return content.encode(encoding)
    *lines, last = content.splitlines(keepends=True)
    return "".join(lines).encode() + last.encode("cp1252")


def excel_value(cell: str) -> Any:
    if cell.startswith("="):
        return json.loads(cell[1:])
    return cell.replace("\\n", "\n") or None


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines() if path.is_file() else []


@pytest.mark.parametrize("case", some_by_day(CASES, 5), ids=lambda case: case.stem)
def test_a_messy_table_gives_the_dataset_that_it_means_or_an_error(case: Path, tmp_path: Path, r2med: Command) -> None:
    words, files, expected = sections(case)
    names = write_files(tmp_path, files)
    ended = r2med("data", "import", *names, *words, "-o", "mine")
    if "error" in expected or ("refused" in expected and ended.returncode):
        assert ended.returncode == 2, ended.stdout
        message = " ".join(ended.stderr.split())
        if "error" in expected:
            assert message == f"r2med: {expected['error'][0]}"
        assert [fact for fact in expected.get("refused", []) if fact not in message] == [], message
        assert not (tmp_path / "mine").exists()
        return
    assert ended.returncode == 0, ended.stderr
    assert "corpus" in expected, f"this must be refused:\n{ended.stdout}"
    for kind in ("corpus", "query"):
        assert [json.loads(line) for line in lines_of(tmp_path / "mine" / f"{kind}.jsonl")] == [
            json.loads(line) for line in expected.get(kind, [])
        ]
    judged = [json.loads(line) for line in lines_of(tmp_path / "mine" / "qrels.jsonl")]
    pairs = [f"{row['q_id']} {row['p_id']} {row['score']}" for row in judged]
    wanted = expected.get("qrels", [])
    assert pairs == [line.rstrip("?") for line in wanted if not line.endswith("?") or line.rstrip("?") in pairs]
    if "says" in expected:
        assert [text for text in expected["says"] if text not in ended.stdout] == [], ended.stdout
        return
    shown = re.findall(r"^note: (.*)$", ended.stdout, re.MULTILINE)
    notes = expected.get("note", [])
    assert [note for note in notes if not any(note in line for line in shown)] == []
    assert len(shown) == len(notes), shown


def test_there_are_more_than_ninety_cases_in_ten_languages() -> None:
    languages = {case.stem.split("-")[1] for case in CASES}
    assert len(CASES) > 90
    assert {"en", "de", "fr", "es", "it", "pt", "ru", "pl", "zh", "ja", "ko", "th"} <= languages
