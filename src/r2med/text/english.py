"""Lucene's EnglishAnalyzer: tokens, without possessives, lower-cased, without stop words, stemmed."""

import re
from functools import lru_cache

from r2med.text.plain import blank_outside_tokens
from r2med.text.porter import stem
from r2med.text.segment import MAX_UNITS, segment
from r2med.text.stopwords import STOP_WORDS

# Not `str.split()`: U+202F counts as white space there, but joins words for the segmenter.
_CHUNK = re.compile(r"[^\t-\r ]+")
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")


def english(text: str) -> list[str]:
    """Return the index terms of `text`, in order: those of Lucene's EnglishAnalyzer with its default stop words."""
    return [term for chunk in _CHUNK.findall(text) for term in _remembered(chunk)]


def terms(chunk: str) -> tuple[str, ...]:
    """Return the index terms of one chunk of text without white space."""
    if is_plain(chunk):
        tokens = blank_outside_tokens(chunk).split()
    else:
        tokens = [_lower(token) for token in segment(chunk)]
    return tuple([term for token in tokens if (term := term_of(token))])


_remembered = lru_cache(maxsize=1 << 16)(terms)


def is_plain(chunk: str) -> bool:
    """Return whether the short way of `plain.py` is right for the chunk."""
    return chunk.isascii() and len(chunk) <= MAX_UNITS


def term_of(token: str) -> str:
    """Return the index term of a lower-case token; empty for a stop word."""
    if token[-1] == "s" and token[-2:-1] in ("'", "\u2019", "\uff07"):
        token = token[:-2]
    if token in STOP_WORDS:
        return ""
    if token.isascii() or not _SUPPLEMENTARY.search(token):
        return stem(token)
    # Lucene stems UTF-16 units: a character beyond U+FFFF is two consonants, and never a doubled one.
    units = _SUPPLEMENTARY.sub(lambda match: _surrogates(match[0]), token)
    return stem(units).encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _lower(token: str) -> str:
    """Return each character in lower case by itself, as Java does: no final sigma, no dot left over from U+0130."""
    return token.replace("\u0130", "i").replace("\u03a3", "\u03c3").lower()


def _surrogates(character: str) -> str:
    offset = ord(character) - 0x10000
    return chr(0xD800 + (offset >> 10)) + chr(0xDC00 + (offset & 0x3FF))
