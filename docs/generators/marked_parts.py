"""Parts of pages that follow from the address of the repository.

A part is between the comments `<!-- NAME -->` and `<!-- /NAME -->` of a page that is otherwise written by hand. The
address is `repository` in pyproject.toml, and empty until there is one.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

from r2med import __version__

ROOT = Path(__file__).parents[2]


def pages() -> dict[Path, str]:
    """Return each page with parts, and its text as it must be."""
    address = repository()
    parts = {
        "README.md": {"start": readme_start(address)},
        "docs/index.md": {"start": index_start(address)},
        "docs/install.md": {"version": certain_version(address)},
    }
    texts = {ROOT / name: filled((ROOT / name).read_text("utf-8"), each) for name, each in parts.items()}
    workflow = ROOT / "docs/leaderboard-check.yml"
    texts[workflow] = leaderboard_workflow(workflow.read_text("utf-8"), address)
    return texts


def repository() -> str:
    """Return the address of the repository; empty until it is set."""
    tables = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return str(tables["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"])


def filled(text: str, parts: Mapping[str, str]) -> str:
    """Return a page with the texts of its parts. Raises ValueError if a part is not there exactly once."""
    for name, part in parts.items():
        text, times = re.subn(
            rf"(<!-- {name} -->).*?(<!-- /{name} -->)", lambda mark, new=part: mark[1] + new + mark[2], text, flags=re.S
        )
        if times != 1:
            raise ValueError(f"the part {name} must be there once, and is there {times} times")
    return text


def readme_start(address: str) -> str:
    """Return how to get r2med and start it."""
    if address:
        return _block(f"```\ngit clone {address} r2med && cd r2med\nmake run\n```")
    return _block("In a terminal, in your clone or unpacked copy of this repository:\n\n```\nmake run\n```")


def index_start(address: str) -> str:
    """Return the same for the first page of the site."""
    run = "make run   # install, evaluate the demo, make the board"
    needs = "Python 3.11 or newer, and no GPU, no key and no account:"
    if address:
        lines = f"```\ngit clone {address} r2med\ncd r2med && {run}\n```"
        return _block(f"Type two commands in a terminal. They need {needs}\n\n{lines}")
    return _block(
        "Open a terminal in the folder of r2med, a clone or an unpacked copy of its repository, and type one command.\n"
        f"It needs {needs}\n\n```\n{run}\n```"
    )


def certain_version(address: str) -> str:
    """Return how to install one version."""
    source = f"{address}@v{__version__}" if address else "file:///home/me/r2med@COMMIT"
    line = f"```text\npip install 'r2med @ git+{source}'\n```"
    if address:
        return _block(f"Install from a clone, or from the address, at a tag or, safer, at a commit:\n\n{line}")
    return _block(
        "The repository has no published address yet: install from your clone with `pip install -e .`. For\n"
        f"another environment on the same machine, name the clone and a commit of it:\n\n{line}"
    )


def leaderboard_workflow(text: str, address: str) -> str:
    """Return the workflow of a leaderboard with the address, or with a word that its user replaces."""
    return re.sub(r"( R2MED: )\S+", rf"\g<1>{address or 'https://REPLACE-WITH-THE-ADDRESS-OF-R2MED'}", text)


def _block(text: str) -> str:
    """Return a text with empty lines around it: a line that begins with a comment is not read as Markdown."""
    return f"\n\n{text}\n\n"
