"""What `make run` installs is enough for the first page; a command that needs more says so before anything else."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from r2med.foundation.core.installation import EXTRA_OF_MODULE
from support.docs_assumed import PAGES, Assumed
from support.docs_pages import AS_TYPED, INSTALL, WITH_STAND_INS, Line, lines, write_files
from support.docs_reader import PROGRAMS, Reader, program_of
from support.docs_stand_ins import serving_stand_ins
from support.loopback import listening
from support.plain_environment import PlainEnvironment, environment_of_make_run, linked_environment
from support.processes import Ended

README = "../README.md"
WAYS = (README, "tutorial.md", "extend.md", "extend-cards.md", "extend-code.md", "extend-build.md", "from-r2med.md")


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    with serving_stand_ins(tmp_path_factory.mktemp("stand-ins")) as places:
        yield places


@pytest.fixture(scope="module")
def plain(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> PlainEnvironment:
    return linked_environment(places["hub"], tmp_path_factory.mktemp("plain"))


def ended(plain: PlainEnvironment, folder: Path, *words: str) -> Ended:
    return plain.run(words, folder, {})


def typed(page: str) -> list[Line]:
    """Return the lines of a page that a reader types in a terminal with r2med."""
    ours = [line for line in lines(page) if program_of(line.text) in PROGRAMS]
    return [line for line in ours if line.kind in (AS_TYPED, WITH_STAND_INS)]


def read(page: str, folder: Path, plain: PlainEnvironment, places: dict[str, str]) -> None:
    """Type every line of a page. Each command works, or it names an install that stands above it."""
    write_files(page, folder)
    with listening(partial(SimpleHTTPRequestHandler, directory=str(folder))) as files:  # type: ignore[arg-type]
        reader = Reader(folder, plain, places | {"files": files}, PAGES.get(page, Assumed()))
        reader.prepare()
        for line in typed(page):
            ended = reader.typed_line(line)
            if ended is not None and ended.returncode:
                assert parts_named(ended) <= line.installed, f"{page}: {line.text}\n{ended.stdout}\n{ended.stderr}"


def parts_named(ended: Ended) -> set[str]:
    """Return the optional parts that a command names as missing, in its only line."""
    assert ended.returncode == 2 and not ended.stdout, f"{ended.stdout}\n{ended.stderr}"
    assert len(ended.messages) == 1, ended.stderr
    named = INSTALL.findall(ended.stderr)
    assert named, ended.stderr
    return set(named)


def test_a_linked_environment_has_no_optional_part(plain: PlainEnvironment) -> None:
    assert [module for module in EXTRA_OF_MODULE if not plain.lacks(module)] == []
    assert not plain.lacks("numpy") and plain.lacks("pytest")


def test_every_command_of_the_readme_works_in_an_environment_of_its_dependencies(
    plain: PlainEnvironment, places: dict[str, str], tmp_path: Path
) -> None:
    assert len(typed(README)) >= 9
    read(README, tmp_path, plain, places)


@pytest.mark.parametrize("system", ["bm25", "hyde(gpt4) → bm25"])
def test_a_plan_needs_no_models(system: str, plain: PlainEnvironment, tmp_path: Path) -> None:
    planned = ended(plain, tmp_path, "run", system, "--data", "demo/Biology", "--plan")
    assert planned.returncode == 0, planned.stderr
    assert "Traceback" not in planned.stderr and "indexes" in planned.stdout


def test_the_plan_of_a_model_says_what_installs_the_packages_that_it_lacks(
    plain: PlainEnvironment, tmp_path: Path
) -> None:
    planned = ended(plain, tmp_path, "run", "bm25+minilm", "hyde(gpt4) → minilm", "--data", "demo/Biology", "--plan")
    assert planned.returncode == 0, planned.stderr
    assert re.search(r"minilm: .*MISSING: pip install -e '\.\[models\]'", planned.stdout), planned.stdout


PLAN = """name = "small"
llm = "scripted"
answers = "answers.jsonl"
steps = ["read-table(questions.csv)", "read-web(pages)", "chunk", "mine(committee=bm25, depth=1)"]
"""
NEEDS = {
    "run bm25 minilm bm25+minilm --data demo": "models",
    "run bm25 'bm25 → bge-reranker@10' --data demo": "models",
    "run bm25 'bm25 → maxsim(reason-moderncolbert)@10' --data demo": "models",
    "run bm25 --device cuda hf:ORG/NAME": "models",
    "run bm25 --engine ray --data demo": "cluster",
    "run bm25 --data irds:beir/scifact/test": "irds",
    "run bm25 mteb:ORG/NAME --data demo": "mteb",
    "analyse overlap --data demo/Biology --model minilm": "models",
    "lock bm25 minilm --data demo": "models",
    "search demo/Biology light --system minilm": "models",
    "serve demo/Biology --system minilm": "models",
    "serve demo/Biology --mcp stdio": "mcp",
    "advise demo/Biology --model minilm": "models",
    "doctor --model minilm": "models",
    "generate hyde --llm smollm2": "local",
    "build run plan.toml -o built": "build",
}
"""Command -> the optional part that it needs."""


@pytest.mark.slow
@pytest.mark.parametrize("command", NEEDS)
def test_a_command_that_needs_an_optional_part_says_so_before_it_does_anything(
    command: str, plain: PlainEnvironment, tmp_path: Path
) -> None:
    (tmp_path / "plan.toml").write_text(PLAN, encoding="utf-8")
    (tmp_path / "answers.jsonl").touch()
    (tmp_path / "questions.csv").write_text("id,question,answer\nq1,Why?,Iron\n", encoding="utf-8")
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/page.html").write_text("<p>text</p>", encoding="utf-8")
    assert parts_named(ended(plain, tmp_path, *shlex.split(command))) == {NEEDS[command]}
    assert not (tmp_path / "results").exists()


@pytest.mark.slow
@pytest.mark.parametrize("page", WAYS)
def test_every_command_of_a_way_works_in_the_environment_of_make_run(
    page: str, places: dict[str, str], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    plain = environment_of_make_run(places["hub"], tmp_path_factory.mktemp("plain"))
    read(page, tmp_path, plain, places)
