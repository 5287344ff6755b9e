"""The commands of the docs run here, page by page, in the order of the page.

A command in a block without a kind runs as it stands. One in a block of the kind `sh` runs with stand-ins for keys,
servers, models, downloads and files of the reader's: see `support.docs_stand_ins` and `support.docs_assumed`. Blocks
of the kind `shell` are only shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from support.docs_assumed import PAGES, Assumed
from support.docs_pages import AS_TYPED, DOCS, NOT_RUN, WITH_STAND_INS, Line, lines, write_files
from support.docs_reader import PROGRAMS, ForkedTerminal, Reader, program_of
from support.docs_stand_ins import serving_stand_ins, write_models
from support.fork_server import ForkServer
from support.loopback import listening
from support.processes import PATIENCE

ELSEWHERE = {
    *("tutorial.md", "extend.md"),  # by test_three_ways.py
    *("extend-cards.md", "extend-code.md", "extend-build.md"),  # by test_contributing.py
    "gallery.md",  # by docs/make_site.py, in `make check`
}
SHOWN = {
    "r2med run mteb:intfloat/e5-small-v2 --data R2MED": "needs mteb, which some machines must compile",
    "r2med run 'bm25 → mteb:BAAI/bge-reranker-v2-m3@100' --data R2MED": "the same",
    "r2med run mteb:ORG/NAME --data demo": "the same",
    'r2med run "bm25 → mteb:ORG/NAME@50" --data demo': "the same",
    "r2med run bm25 --data irds:beir/scifact/test": "ir_datasets downloads from a host of its own",
    "r2med run 'bm25 → reasonrank-7b(prompts=./theirs)@100' --data R2MED --base-url URL": "needs the authors' prompt",
    "r2med show --kind prompts reasonrank-7b -o ./theirs": "the authors' prompt replaces what it writes",
    "r2med data training mine -o train --overlay overlays/judged.jsonl --folds 5": "before a training of minutes",
    "r2med run minilm folds:models --data mine --repeats 5": "after that training: test_training_example.py",
    "r2med compare folds:models minilm --baseline minilm": "the same",
    "r2med data training mine -o all --overlay overlays/judged.jsonl": "the same",
    "r2med serve mine --system path:model": "the same",
    "r2med run --suite paper --trust-remote-code": "needs a dozen models of up to 7B",
    "r2med run --suite rerank --trust-remote-code": "the same",
    "r2med run --suite records --trust-remote-code": "the same",
}
"""Commands of r2med that this test does not type, and why."""
OTHER_PROGRAMS = {
    "pip": "installs",
    "vllm": "needs a GPU",
    "text-embeddings-router": "needs a GPU",
    "ray": "needs several hosts",
}
"""Programs that stand between commands of r2med, and why no test starts them."""


def typed(page: str) -> list[Line]:
    """Return the lines of a page that are run here."""
    return [
        line
        for line in lines(page)
        if (line.kind == AS_TYPED and line.text.startswith("r2med "))
        or (line.kind == WITH_STAND_INS and program_of(line.text) not in OTHER_PROGRAMS)
    ]


HERE = [
    "../README.md",
    *(page.name for page in sorted(DOCS.glob("*.md")) if page.name not in ELSEWHERE and typed(page.name)),
]


@pytest.fixture(scope="module")
def places(fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("stand-ins")
    fork_server.start("--version").ended(10 * PATIENCE)  # this file is among the first: everything is still imported
    written = fork_server.run("--version", fault=partial(write_models, folder / "models"))
    assert written.returncode == 0, written.stderr
    with serving_stand_ins(folder) as places:
        yield places


def read(page: str, places: dict[str, str], folder: Path, fork_server: ForkServer) -> None:
    """Type every line of a page in an empty folder."""
    write_files(page, folder)
    with listening(partial(SimpleHTTPRequestHandler, directory=str(folder))) as files:  # type: ignore[arg-type]
        terminal = ForkedTerminal(fork_server, places["hub"])
        reader = Reader(folder, terminal, places | {"files": files}, PAGES.get(page, Assumed()))
        reader.prepare()
        for line in typed(page):
            reader.type(line)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in HERE if page != "build.md"])
def test_every_command_of_a_page_runs(
    page: str, places: dict[str, str], tmp_path: Path, fork_server: ForkServer
) -> None:
    read(page, places, tmp_path, fork_server)


@pytest.mark.slow
def test_the_tutorial_of_building_ends_in_a_reviewed_benchmark(
    places: dict[str, str], tmp_path: Path, fork_server: ForkServer
) -> None:
    read("build.md", places, tmp_path, fork_server)
    sheet = (tmp_path / "ward-built" / "ward-questions" / "README.md").read_text(encoding="utf-8")
    assert "| Queries | 3 |" in sheet
    assert "| positive, accepted by people | 100.0% |" in sheet
    assert "α is Krippendorff's (ordinal)" in sheet, "the table of agreement is there"


def test_what_is_not_run_is_listed_with_the_reason() -> None:
    """The site says below a block of the kind `shell` that it is not run, and below one of the kind `sh` how."""
    every = [line for page in sorted(DOCS.glob("*.md")) for line in lines(page.name)]
    assert {line.text for line in every if line.kind == NOT_RUN and program_of(line.text) == "r2med"} == {*SHOWN}
    beside = {program_of(line.text) for line in every if line.kind == WITH_STAND_INS} - {*PROGRAMS}
    assert beside <= {*OTHER_PROGRAMS, "wget"}
    pages = {page.name for page in DOCS.glob("*.md")}
    assert not [page for page in ELSEWHERE & pages if any(line.kind == WITH_STAND_INS for line in lines(page))]


@pytest.mark.parametrize("page", PAGES)
def test_every_word_that_a_stand_in_replaces_is_on_its_page(page: str) -> None:
    texts = "\n".join(line.text for line in lines(page) if line.kind == WITH_STAND_INS)
    assert [pattern for pattern in PAGES[page].words if not re.search(pattern, texts)] == []


def test_most_commands_of_the_docs_are_run() -> None:
    kinds = [line.kind for page in HERE for line in typed(page)]
    assert kinds.count(AS_TYPED) > 40 and kinds.count(WITH_STAND_INS) > 140
