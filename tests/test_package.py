"""The package's metadata: extras, dependency groups, versions of Python, bounds, and the README of an index page."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

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
    assert bounded >= {"scipy"}
    assert "numpy" not in bounded, "a new NumPy would not be installed beside r2med"


TYPED = {
    *("numpy", "pydantic", "pydantic_core", "rich", "typer"),
    *(
        "fastapi",
        "httpx2",
        "langchain_core",
        "mcp",
        "mcp_types",
        "platformdirs",
        "safetensors",
        "starlette",
        "tokenizers",
        "uvicorn",
    ),
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


ADDRESS = "https://host.example/owner/r2med"


def test_images_and_links_of_the_readme_are_absolute_on_an_index_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    page = hook().absolute(text, ADDRESS, "v1.0.0")
    assert f"]({ADDRESS}/raw/v1.0.0/docs/images/" in page or f'src="{ADDRESS}/raw/v1.0.0/docs/images/' in page
    assert f"]({ADDRESS}/blob/v1.0.0/docs/tutorial.md)" in page
    assert re.findall(r'(?:\]\(|src="|href=")(?!https?:|mailto:|#)', page) == []


def parts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the module that writes the address into the pages."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("generators.marked_parts")


def addresses(text: str) -> list[str]:
    return re.findall(r"(?:git clone |git\+|R2MED: )(\w+://[\w./-]+?)(?:\.git)?[\s\"'@`]", text)


def test_the_address_of_the_repository_is_one_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(monkeypatch)
    monkeypatch.setattr(made, "repository", lambda: ADDRESS)
    named = {path.name: addresses(text) for path, text in made.pages().items() if path.suffix != ".json"}
    with_address = {name for name, found in named.items() if found == [ADDRESS]}
    assert with_address == {"README.md", "index.md", "install.md", "leaderboard-check.yml"}
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    others = [path.name for path in pages if path.name not in named and addresses(path.read_text("utf-8"))]
    assert others == [], "a page with the address is missing in marked_parts.py"


def test_without_an_address_pages_say_how_to_use_a_clone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = parts(monkeypatch)
    monkeypatch.setattr(made, "repository", lambda: "")
    texts = {path.name: text for path, text in made.pages().items()}
    for name in ("README.md", "index.md"):
        assert "git clone" not in texts[name]
        assert "clone or" in texts[name] and "\nmake run" in texts[name]
    assert addresses(texts["install.md"]) == ["file:///home/me/r2med"]
    assert "your clone" in texts["install.md"]


@pytest.mark.parametrize("address", ["", ADDRESS])
def test_metadata_has_urls_only_with_an_address(address: str) -> None:
    metadata: dict[str, Any] = {"version": "1.0.0"}
    hook().IndexPage(str(ROOT), {"repository": address}).update(metadata)
    assert set(metadata["urls"]) == ({"Repository", "Documentation", "Changes", "Issues"} if address else set())
    assert ("](docs/tutorial.md)" in metadata["readme"]["text"]) == (not address)


def hook() -> Any:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
