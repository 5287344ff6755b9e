"""The package's metadata: extras, dependency groups, versions of Python, bounds, and the README of an index page."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

from support.sources import source

ROOT = Path(__file__).parent.parent
TABLES: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = TABLES["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]
GROUPS: dict[str, list[Any]] = TABLES["dependency-groups"]
NEED_A_COMPILER_ON_ARM = {"mteb", "pyterrier"}


def test_the_extra_all_has_every_other_one_and_leaves_out_on_arm_what_needs_a_compiler() -> None:
    (own,) = [line for line in EXTRAS["all"] if line.startswith("r2med[")]
    named = set(re.findall(r"[a-z]+", own.removeprefix("r2med")))
    assert named == set(EXTRAS) - {"all"} - NEED_A_COMPILER_ON_ARM
    others = [line for line in EXTRAS["all"] if line != own]
    marker = "; platform_machine != 'aarch64'"
    assert sorted(others) == sorted(f"{line}{marker}" for each in NEED_A_COMPILER_ON_ARM for line in EXTRAS[each])


def test_what_developers_need_is_no_extra_and_names_no_extra_of_r2med() -> None:
    assert {"test", "check", "benchmark"} <= set(GROUPS) and not set(GROUPS) & set(EXTRAS)
    lines = [line for group in GROUPS.values() for line in group if isinstance(line, str)]
    assert not [line for line in lines if line.startswith("r2med")], "pip would look for it on an index"


def test_each_python_from_the_oldest_on_has_a_classifier() -> None:
    listed = {line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)}
    assert listed == {"3.11", "3.12", "3.13", "3.14"} and PROJECT["requires-python"] == ">=3.11"


def test_a_library_whose_private_parts_are_used_has_an_upper_bound() -> None:
    bounded = {line.partition(">")[0] for line in PROJECT["dependencies"] if ",<" in line}
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        imported |= set(re.findall(r"^\s*(?:from|import) (?!r2med)(\w+)[\w.]*\._\w+", path.read_text("utf-8"), re.M))
    assert imported == {"scipy"}
    assert bounded == {"scipy", "numpy"}  # `_mmap` of NumPy's mapped arrays, in store/files.py


TYPED = {
    *("numpy", "pydantic", "pydantic_core", "rich", "typer"),
    *("fastapi", "httpx2", "langchain_core", "mcp", "mcp_types", "safetensors", "starlette", "tokenizers", "uvicorn"),
}
"""Libraries whose types are checked. `make check` installs all of them, so they are the same for everybody."""


def test_types_are_checked_without_the_packages_that_happen_to_be_installed() -> None:
    imported = set()
    for path in (ROOT / "src").rglob("*.py"):
        names = (*source(path).modules, *(module for module, _ in source(path).members))
        imported |= {name.partition(".")[0] for name in names}
    others = imported - TYPED - set(sys.stdlib_module_names) - {"r2med", "_typeshed", ""}
    overrides = [each for each in TABLES["tool"]["mypy"]["overrides"] if each.get("follow_imports") == "skip"]
    skipped = {name.removesuffix(".*") for each in overrides for name in each["module"]}
    assert others <= skipped, "mypy reads these where they are installed, so `make check` may fail there"


def test_images_and_links_of_the_readme_are_absolute_on_an_index_page() -> None:
    address = TABLES["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = hook().absolute(text, address, "v1.0.0")
    assert f"]({address}/raw/v1.0.0/docs/images/" in page or f'src="{address}/raw/v1.0.0/docs/images/' in page
    assert f"]({address}/blob/v1.0.0/docs/tutorial.md)" in page
    assert re.findall(r'(?:\]\(|src="|href=")(?!https?:|mailto:|#)', page) == []


def test_the_address_of_the_repository_is_the_one_setting() -> None:
    address = TABLES["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]
    pages = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs").glob("*.yml"),
    ]
    named = {
        found
        for page in pages
        for found in re.findall(r"(?:git clone |git\+)(https?://[\w./-]+?)(?:\.git)?[\s\"'@`]", page.read_text("utf-8"))
    }
    assert named == {address}


def hook() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
