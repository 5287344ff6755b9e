"""The commands of the pages of the docs: how each block is written, and what its kind says about the tests."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
AS_TYPED, WITH_STAND_INS, NOT_RUN = "", "sh", "shell"
"""Kinds of blocks. The site says below a block of the last two kinds how far the tests go (docs/site.css)."""


INSTALL = re.compile(r"pip install -e '\.\[([a-z,]+)\]'")
"""The command that installs optional parts."""


@dataclass(frozen=True)
class Line:
    """A line of a block that a reader types, without the comment behind it."""

    kind: str
    text: str
    installed: frozenset[str] = frozenset()
    """The optional parts that the page says to install above this line."""


def lines(page: str) -> list[Line]:
    """Return what a page says to type, in its order. Lines that end in a backslash are joined."""
    text = (DOCS / page).read_text(encoding="utf-8")
    found = []
    for block in BLOCK.finditer(text):
        kind, body = block.groups()
        if kind in (AS_TYPED, WITH_STAND_INS, NOT_RUN) and not body.startswith("# file:"):
            above = text[: block.start()]
            for line in body.replace("\\\n", " ").splitlines():
                if typed := re.sub(r"(^|\s)#.*", "", line).strip():
                    found.append(Line(kind, typed, _parts(above)))
                above += f"{line}\n"
    return found


def _parts(text: str) -> frozenset[str]:
    """Return the optional parts that a text says to install."""
    return frozenset(part for named in INSTALL.findall(text) for part in named.split(","))


def write_files(page: str, folder: Path) -> None:
    """Write every file that a page shows: its block begins with `# file: PATH`."""
    for _, body in BLOCK.findall((DOCS / page).read_text(encoding="utf-8")):
        if named := re.match(r"# file: (\S+)\n", body):
            path = folder / named[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(body[named.end() :], encoding="utf-8")
