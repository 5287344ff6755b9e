"""Decide by a rule if an answer is the reference answer. Every other answer is left to a judge."""

from __future__ import annotations

import re
from unicodedata import category, normalize

_ARTICLE = re.compile(r"^(?:the|an(?=\s+[aeiouh])|a(?!\s+[aeiou]))\s+(?=\w)")
"""An article at the start. Elsewhere "a" can be a name, as in "hepatitis A"."""
_INNER_HYPHEN = re.compile(r"(?<=\w)[-‐‑–](?=\w)")
_KEPT = "%‰-‐‑–"
"""Punctuation that can change a meaning, as in "5 %" and "Rh-"."""


def by_rule(text: str, gold: str) -> bool | None:
    """Return True if a text is the reference answer, and None if the rule cannot decide.

    Case, white space, punctuation and an article at the start do not matter. Any further word does: a text that names
    the reference may also deny it, doubt it or list it among others, and only a judge can read that.
    """
    reference = _normalised(gold)
    return True if reference and _normalised(text) == reference else None


def _normalised(text: str) -> str:
    lowered = " ".join(normalize("NFKC", text).casefold().split()).lstrip("\"'“‘(")
    joined = _INNER_HYPHEN.sub(" ", _ARTICLE.sub("", lowered))
    kept = (" " if category(letter)[0] == "P" and letter not in _KEPT else letter for letter in joined)
    return " ".join("".join(kept).split())
