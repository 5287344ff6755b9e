"""The commands of the docs that need nothing but the demo run here, page by page, in the order of the page."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

import r2med as package
from r2med.data import load
from support.answer_records import answer_record, answered, write
from support.fork_server import Command

DOCS = Path(__file__).parent.parent / "docs"
DEMO = Path(package.__file__).parent / "data/demo"
ELSEWHERE = {
    *("tutorial.md", "way-model.md"),  # by test_three_ways.py
    "build.md",  # by test_build_tutorial.py
    "extend.md",  # by test_contributing.py
    *("gallery.md", "compare.md"),  # by docs/make_site.py, in `make check`
}
NEED_RESULTS = ("board.md", "bridges.md")


def page_commands(page: Path) -> list[str]:
    """Return the commands in blocks without a kind. The site says below a block of the kind `sh` that it is not run."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(.*?)^```", re.sub(r"^```\w+\n.*?^```", "", text, flags=re.S | re.M), re.S | re.M)
    return [line for body in blocks for line in body.splitlines() if line.startswith("r2med ")]


RUN = {page.name: lines for page in sorted(DOCS.glob("*.md")) if (lines := page_commands(page))}
HERE = sorted(RUN.keys() - ELSEWHERE)


def prepare(page: str, folder: Path, r2med: Command) -> None:
    """Make what a page assumes: a dataset `mine`, records of bm25, or answer records."""
    if page != "prompts.md":  # there `mine` is a folder of prompts, which the page itself makes
        shutil.copytree(DEMO / "Biology", folder / "mine")
    if page in NEED_RESULTS:
        assert r2med("run", "bm25", "--data", "demo/Biology").returncode == 0
    if page == "answers.md":
        dataset = load("demo/Medical-Sciences")
        answers = answered(dataset)
        for system in ("bm25", "hyde(author) → bm25"):
            write(answer_record(answers, dataset, system), folder / "results", answers)


@pytest.mark.parametrize("page", HERE)
def test_commands_of_the_docs_that_need_only_the_demo_run(page: str, tmp_path: Path, r2med: Command) -> None:
    prepare(page, tmp_path, r2med)
    for line in RUN[page]:
        ended = r2med(*shlex.split(line, comments=True)[1:])
        assert ended.returncode == 0, f"{line}\n{ended.stderr}"


def test_most_pages_with_commands_have_some_that_run() -> None:
    assert len(HERE) > 7
