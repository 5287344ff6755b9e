"""Lucene's EnglishAnalyzer: tokens, without possessives, lower-cased, without stop words, stemmed."""

import re
from collections.abc import Sequence
from functools import lru_cache

from r2med.foundation.text.porter import stem
from r2med.foundation.text.segment import MAX_UNITS, segment

# Not `str.split()`: U+202F counts as white space there, but joins words for the segmenter.
CHUNK_PATTERN = re.compile(r"[^\t-\r ]+")
_SUPPLEMENTARY = re.compile("[\U00010000-\U0010ffff]")


def english(text: str) -> list[str]:
    """Return the index terms of `text`, in order: those of Lucene's EnglishAnalyzer with its default stop words."""
    return [term for chunk in CHUNK_PATTERN.findall(text) for term in _remembered(chunk)]


def terms(chunk: str) -> tuple[str, ...]:
    """Return the index terms of one chunk of text without white space."""
    if is_plain(chunk):
        tokens = blank_outside_tokens(chunk).split()
    else:
        tokens = [_lower(token) for token in segment(chunk)]
    return tuple(filter(None, map(_terms.__getitem__, tokens)))


_remembered = lru_cache(maxsize=1 << 16)(terms)


@lru_cache(maxsize=1 << 16)
def located_terms(chunk: str) -> tuple[tuple[int, int, str], ...]:
    """Return (start, stop, index term) of each token of a chunk of text without white space; stop words left out."""
    plain = is_plain(chunk)
    written, tokens = (chunk.lower(), blank_outside_tokens(chunk).split()) if plain else (chunk, segment(chunk))
    located = []
    stop = 0
    for token in tokens:
        start = written.index(token, stop)  # no token can start with a character from between two tokens
        stop = start + len(token)
        if term := term_of(token if plain else _lower(token)):
            located.append((start, stop, term))
    return tuple(located)


def is_plain(chunk: str) -> bool:
    """Return True if `blank_outside_tokens` segments the chunk as the rules of Unicode do."""
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


_WORDS = """
a an and are as at be but by for if in into is it no not of on or such
that the their then there these they this to was will with
"""
STOP_WORDS = frozenset(_WORDS.split())


# All characters are outside tokens, except letters (which become lower case), digits and characters that can join.
# Line breaks are kept for callers that put one text on each line.
_KEPT = ".,:;'_\n"
_BLANKED = {code: chr(code).lower() if chr(code).isalnum() or chr(code) in _KEPT else " " for code in range(128)}
# A mid character joins two letters or two digits, otherwise it is loose. Underscores join all tokens, but a token
# cannot consist of underscores alone.
_LOOSE = re.compile(
    r"[.,:;'](?!(?<=[a-z][.':])[a-z]|(?<=[0-9][.',;])[0-9])"
    r"|(?<![a-z0-9_])_++(?![a-z0-9])"
)


def blank_outside_tokens(text: str) -> str:
    """Return ASCII `text` in lower case, with blanks for everything outside tokens, so that `split()` gives the tokens.

    This is correct only if no token is so long that Lucene cuts it.
    """
    return _LOOSE.sub(" ", text.translate(_BLANKED))


class _Terms(dict[str, str]):
    """The term of each lower-case token seen so far, so that a corpus stems each word once and not once per segment."""

    def __missing__(self, token: str) -> str:
        term = term_of(token)
        if len(self) < MAX_REMEMBERED_TERMS:
            self[token] = term
        return term


MAX_REMEMBERED_TERMS = 1 << 18
"""Number of tokens whose terms are kept, about 50 MB. The first tokens are common enough to occur again."""

_terms = _Terms()


def analyse_chunks(chunks: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the `terms` of each chunk, in order.

    Plain chunks travel as the lines of one string, because one call on four megabytes costs less than four
    hundred thousand calls on ten characters.
    """
    plain = [chunk if is_plain(chunk) else "" for chunk in chunks]
    lines = blank_outside_tokens("\n".join(plain)).split("\n")
    if len(lines) != len(plain):  # a chunk holds a line break, or there is no chunk: `terms` handles this
        return [terms(chunk) for chunk in chunks]
    term = _terms.__getitem__
    analysed = [tuple(filter(None, map(term, line.split()))) for line in lines]
    for index, chunk in enumerate(plain):
        if not chunk:
            analysed[index] = terms(chunks[index])
    return analysed
