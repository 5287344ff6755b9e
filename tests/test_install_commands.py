"""No doc, message or workflow installs r2med by its bare name: it is not ours, and a stranger could take it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READ = {".md", ".py", ".toml", ".yml", ".yaml", ".ipynb", ".js", ".html", ".sh", ".txt", ".cff", ""}
FOLDERS = ("docs", "src", "benchmarks", ".github", ".ci")
COMMAND = re.compile(
    r"\b(?:pip3?|pipx|uv|uvx|conda|poetry|pdm)(?: tool| pip| -m)? ?(?:install|add|run|inject|download)?\b ([^`\n]*)"
)
# A package, as an installer reads it: the name alone, with extras, or with versions.
BARE = re.compile(r"r2med(?:\[[^\]]*\])?(?:[=<>~!].*)?")


def bare_names(text: str) -> list[str]:
    """Return the commands of a text that would fetch r2med from a package index."""
    return [match[0] for match in COMMAND.finditer(text) if _takes_a_bare_name(match[1])]


def _takes_a_bare_name(arguments: str) -> bool:
    words = _words(re.split(r" (?:in|makes|&&|\||#|;) ", f"{arguments} ")[0])
    after = [*words[1:], ""]
    return any(BARE.fullmatch(word) and following != "@" for word, following in zip(words, after, strict=True))


def _words(arguments: str) -> list[str]:
    try:
        words = shlex.split(arguments)
    except ValueError:  # prose with an apostrophe, or a quote that Python closes
        words = arguments.replace('"', "").replace("'", "").split()
    return [word.strip(".,;:)\"'\\") for word in words]


def files() -> Iterator[Path]:
    """Yield what people read or machines run: docs, source, workflows, the Makefile, container files; not the tests."""
    for path in (*ROOT.glob("*"), *(path for folder in FOLDERS for path in (ROOT / folder).rglob("*"))):
        named = path.suffix in READ or path.name.startswith("Containerfile")
        if named and path.is_file() and "__pycache__" not in path.parts:
            yield path


@pytest.mark.parametrize(
    "line",
    [
        "pip install r2med",
        "pip install 'r2med[hub]'",
        "Run `pip install -U r2med==1.0.0`.",
        "python -m pip install torch r2med[dense]",
        "uv pip install r2med",
        "pipx install r2med",
        "uvx r2med run",
        'RUN pip install --no-cache-dir "r2med[serve]>=1"',
    ],
)
def test_a_bare_name_is_found(line: str) -> None:
    assert bare_names(line)


@pytest.mark.parametrize(
    "line",
    [
        "pip install -e '.[hub]' in a clone of r2med",
        "pip install -e /home/me/r2med",
        "pip install 'r2med[hub] @ git+https://host.invalid/r2med@v1.0.0'",
        "pip install ./r2med-1.0.0-py3-none-any.whl",
        "pip install torch    # then r2med finds it",
    ],
)
def test_a_clone_a_file_or_an_address_is_not_a_bare_name(line: str) -> None:
    assert not bare_names(line)


def test_nothing_says_to_install_r2med_by_its_bare_name() -> None:
    read = list(files())
    assert {"README.md", "leaderboard-check.yml", "installation.py", "Makefile"} <= {path.name for path in read}
    found = {str(path.relative_to(ROOT)): bare_names(path.read_text(encoding="utf-8")) for path in read}
    assert {name: commands for name, commands in found.items() if commands} == {}


def test_only_one_file_of_the_source_says_how_to_install_r2med() -> None:
    named = [
        path.name
        for path in (ROOT / "src").rglob("*.py")
        if re.search(r"install -e|-e '\.\[|r2med\[|install \{?r2med", path.read_text(encoding="utf-8"))
    ]
    assert named == ["installation.py"]
