"""Find a name in a text, by whole words and in any form of them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from r2med.foundation.text.english import english

_WORD = re.compile(r"\w+")


def named_in(text: str, names: Iterable[str]) -> str:
    """Return the first name that a text contains as whole words; empty if it contains none.

    Case, hyphens, endings and stop words are ignored, except that a short abbreviation must be in capitals: "all" is
    not ALL.
    """
    stems = _stems(text)
    words = set(_WORD.findall(text))
    for name in map(str.strip, names):
        is_abbreviation = len(name) <= 5 and name.isupper()
        if name in words if is_abbreviation else _stems(name).strip() and _stems(name) in stems:
            return name
    return ""


def _stems(text: str) -> str:
    return f" {' '.join(english(text))} "
