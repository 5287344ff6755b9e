"""The name that a run gives a system: what tables, boards and papers show."""

from __future__ import annotations

import re

SIGNS = "→+()[],=:@._/-"
MAX_LETTERS = 80


def name_fault(name: str) -> str:
    """Return why a text cannot be the name of a system; empty if it can.

    A word in brackets at the end is refused because boards add one: `bm25 (TEAM)`.
    """
    if len(name) > MAX_LETTERS:
        return f"a name has at most {MAX_LETTERS} characters, not {len(name)}"
    if stray := next((sign for sign in name if not (sign.isalnum() or sign == " " or sign in SIGNS)), ""):
        return f"a name cannot have {stray!r}: use letters, digits, spaces and {SIGNS}"
    if not name[:1].isalnum() or name != " ".join(name.split()):
        return "a name begins with a letter or a digit, and has single spaces inside"
    if name.endswith("→") or re.search(r"\s\([^()]*\)$", name):
        return "a name does not end with an arrow or with a word in brackets, which a board adds"
    return ""
