"""Tables as hospitals and labs export them, in four languages, become exactly the dataset that they mean, or an error.

Each file in `messy/` is a case. `== NAME` begins a file, with its encoding behind it; `== NAME [SHEET]` a sheet of a
workbook, tabs between its cells and a number after `=` being one. `$` lines are words of the command. After `=>` comes
what must result: the lines of corpus, query and qrels, parts of notes that are shown, or the message of the error.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import openpyxl
import pytest

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
    kinds = ("corpus", "query", "qrels", "note", "error")
    return words, files, {kind: [line for line in expected[kind] if line] for kind in kinds}


def write_files(folder: Path, files: dict[str, str]) -> list[str]:
    books: dict[str, openpyxl.Workbook] = {}
    names = []
    for title, content in files.items():
        name, _, rest = title.partition(" ")
        names.append(name)
        if name.endswith(".xlsx"):
            book = books.setdefault(name, openpyxl.Workbook())
            sheet = book.create_sheet(rest.strip("[]"))
            for line in content.removesuffix("\n").split("\n"):
                sheet.append([excel_value(cell) for cell in line.split("\t")])
        else:
            (folder / name).write_bytes(encoded(content.replace("\n", "\r\n"), rest or "utf-8"))
    for name, book in books.items():
        book.remove(book.worksheets[0])
        book.save(folder / name)
    return list(dict.fromkeys(names))


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


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_a_messy_table_gives_the_dataset_that_it_means_or_an_error(case: Path, tmp_path: Path, r2med: Command) -> None:
    words, files, expected = sections(case)
    names = write_files(tmp_path, files)
    ended = r2med("data", "import", *names, *words, "-o", "mine")
    if expected["error"]:
        assert ended.returncode == 2, ended.stdout
        assert " ".join(ended.stderr.split()) == f"r2med: {expected['error'][0]}"
        assert not (tmp_path / "mine").exists()
        return
    assert ended.returncode == 0, ended.stderr
    for kind in ("corpus", "query"):
        assert [json.loads(line) for line in lines_of(tmp_path / "mine" / f"{kind}.jsonl")] == [
            json.loads(line) for line in expected[kind]
        ]
    judged = [json.loads(line) for line in lines_of(tmp_path / "mine" / "qrels.jsonl")]
    assert [f"{row['q_id']} {row['p_id']} {row['score']}" for row in judged] == expected["qrels"]
    shown = re.findall(r"^note: (.*)$", ended.stdout, re.MULTILINE)
    assert [note for note in expected["note"] if not any(note in line for line in shown)] == []
    assert len(shown) == len(expected["note"]), shown


def test_there_are_thirty_cases_in_four_languages() -> None:
    languages = {case.stem.split("-")[1] for case in CASES}
    assert len(CASES) >= 30
    assert {"en", "de", "fr", "es"} <= languages
