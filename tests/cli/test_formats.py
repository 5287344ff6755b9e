"""`--format` on every command that prints a table."""

import csv
import json
import re
import shutil
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from r2med.cli.app import command
from r2med.cli.formats import NAMES
from support.commands import run_here
from support.fork_server import Command

WITHOUT_TABLE = {
    "board": "writes a site",
    "build example": "writes files",
    "data example": "writes files",
    "data export": "writes files; its --format is their layout",
    "data fetch": "prints a line for each dataset",
    "data import": "asks a person about the columns",
    "data training": "writes files; its --format is that of a training library",
    "generate": "writes files",
    "lock": "writes a file",
    "nuggets": "writes a file",
    "records export": "writes files; its --format is their layout",
    "records import": "prints one score",
    "review export": "writes files",
    "review import": "prints one sentence",
    "review serve": "serves a page",
    "serve": "serves a page",
    "submit": "writes a file",
    "unpack": "prints what it put into the store",
}
"""Command -> what it does instead of printing a table."""


def leaves(each: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if hasattr(each, "commands"):
        for name, inner in each.commands.items():
            yield from leaves(inner, (*path, name))
    else:
        yield " ".join(path), each


def has_page_formats(each: Any) -> bool:
    helps = [option.help for option in each.params if "--format" in option.opts]
    return any("markdown, latex, csv, json or html" in (text or "") for text in helps)


def test_every_command_that_prints_a_table_has_the_formats() -> None:
    lacking = {name for name, each in leaves(command()) if not has_page_formats(each)}
    assert lacking == set(WITHOUT_TABLE)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    words = ("run", "bm25", "--data", "demo/Biology", "--out", "results")
    assert run_here(*words, cwd=folder, R2MED_HOME=folder / "r2med-home").returncode == 0
    return folder


@pytest.fixture
def results(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("words", "cell"),
    [
        (["search", "demo/Biology", "Why do fingers wrinkle?"], "bio-031"),
        (["why", "bm25", "demo/Biology", "0"], "bm25"),
        (["data", "check", "demo/Biology"], "demo/Biology"),
        (["show", "o3-mini"], "proprietary"),
        (["verify", "entry.json"], "demo/Biology"),
        (["score", "--qrels", "qrels", "--run", "run"], "MRR"),
        (["compare"], "bm25"),
        (["list", "stages"], "rm3"),
        (["list", "models"], "bge"),
        (["list", "datasets"], "PMC-Clinical"),
        (["show", "--kind", "stages", "hyde"], "samples"),
        (["doctor"], "cache"),
    ],
)
def test_the_same_table_comes_in_every_format(words: list[str], cell: str, r2med: Command, results: Path) -> None:
    (results.parent / "qrels").write_text("q 0 a 1\n")
    (results.parent / "run").write_text("q Q0 a 1 1.0 t\n")
    if words == ["compare"]:
        r2med("run", "rm3 → bm25", "--data", "demo/Biology", "--out", "results")
    if words[0] == "verify":
        r2med("submit", "bm25", "-o", "entry.json")
    shown = {form: r2med(*words, "--format", form) for form in NAMES}
    assert {form: done.returncode for form, done in shown.items()} == dict.fromkeys(NAMES, 0)
    assert {form for form, done in shown.items() if cell not in done.stdout} == set()
    json.loads(shown["json"].stdout)
    widths = {len(row) for row in csv.reader(StringIO(shown["csv"].stdout)) if row}
    assert widths and 0 not in widths
    assert "\\begin{tabular}" in shown["latex"].stdout
    assert "<table" in shown["html"].stdout or words[0] == "search"
    assert re.search(r"^\| :?--", shown["markdown"].stdout, re.MULTILINE)


def test_a_failure_is_an_exit_code_in_every_format(r2med: Command) -> None:
    for form in ("text", "json"):
        done = r2med("doctor", "--base-url", "http://127.0.0.1:9/v1", "--format", form)
        assert done.returncode == 1, done.stderr


def test_a_format_that_does_not_exist_is_refused_before_any_work(r2med: Command) -> None:
    done = r2med("run", "--format", "word")
    assert done.returncode == 2
    assert "text, markdown, latex, csv, json, html" in done.stderr
