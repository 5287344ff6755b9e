"""Count the words of a text, also in scripts that are written without spaces."""

from __future__ import annotations

import re

UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""A character of Thai, Lao, Burmese, Khmer, Japanese or Chinese."""

CHARACTERS_PER_WORD = 2
"""Characters of a word in these scripts, about. Chinese words have 1.5 to 2, Thai words 4 to 5."""


def count_words(text: str) -> int:
    """Return the number of words: those between spaces, or one for every two characters that need no spaces."""
    words = len(text.split())
    unspaced = 0 if text.isascii() else len(UNSPACED.findall(text))
    return max(words, words + unspaced // CHARACTERS_PER_WORD - 1) if unspaced else words
