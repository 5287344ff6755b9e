"""A user's own folder of templates: each file has a name that is asked for, or one line says that it has not.

Otherwise the template it was to replace would stay in use, and nobody would know.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path

from r2med.data.dataset_cards import cards
from r2med.errors import UserError, nearest

SUFFIX = ".txt"
DEFAULT_KIND = "case"

_CLOSE = 0.75
"""How alike two kinds are of which one is the other misspelt: exma and exam are, news and case are not."""


def own_files(folder: Path, ours: Collection[str]) -> dict[str, Path]:
    """Return the templates of a folder by name; `ours` are the names of those that there are already."""
    folder = folder.expanduser()
    if not folder.is_dir():
        raise UserError(f"--prompts {folder}: there is no such folder")
    there = sorted(path for path in folder.iterdir() if not path.name.startswith("."))
    for path in there:
        if path.suffix != SUFFIX and (path.stem in ours or path.name in ours):
            raise UserError(f"{path}: the name of a template ends in {SUFFIX}")
    own = {path.stem: path for path in there if path.suffix == SUFFIX}
    if not own:
        raise UserError(f"--prompts {folder}: it has no templates, such as hyde.case{SUFFIX}")
    return own


def kind_in(name: str) -> str:
    """Return the kind as templates are named by it: post, exam, case or similar-case."""
    return name.replace(" ", "-") or DEFAULT_KIND


def check_names(
    own: Mapping[str, Path], ours: Collection[str], methods: Collection[str], kinds: Collection[str], every: bool
) -> None:
    """Raise for a name that nothing asks for.

    `kinds` are those of the datasets at hand. Unless that is `every` one, another may still have a kind that nobody
    knows, and only what looks like a known kind misspelt is refused.
    """
    known = {*kinds, *(kind_in(card.kind) for card in cards().values())}
    known |= {name.partition(".")[2] for name in ours if "." in name}
    for name, path in own.items():
        method, _, kind = name.partition(".")
        with_kinds = any(other.startswith(f"{method}.") for other in ours)
        without = method in ours
        if method not in methods or (kind and without and not with_kinds) or (not kind and with_kinds and not without):
            names = "METHOD.KIND.txt, such as hyde.case.txt"
            raise UserError(f"{path} has no template's name{nearest(name, ours)}: {names}")
        if kind and kind not in known and (every or difflib.get_close_matches(kind.lower(), known, 1, _CLOSE)):
            there = ", ".join(sorted(known))
            raise UserError(f"{path}: no dataset is of kind {kind!r}{nearest(kind, known)}: {there}")
