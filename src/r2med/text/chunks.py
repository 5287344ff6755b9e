"""Analyses many chunks at once: the indexer's way in, built for speed."""

from collections.abc import Sequence

from r2med.text.english import ASCII_TOKEN, term_of, terms
from r2med.text.segment import MAX_UNITS

# In ASCII only these can be part of a token; upper case goes to lower on the way.
_IN_TOKENS = "abcdefghijklmnopqrstuvwxyz0123456789_.,:;'\n"
_MIDS = " .,:;'"  # they join only between letters or digits, so never at the edge of a chunk
_BARE = str.maketrans({code: chr(code).lower() if chr(code).lower() in _IN_TOKENS else " " for code in range(128)})


class _Terms(dict[str, str]):
    """The term of each lower-case token met so far, so that each is stemmed once."""

    def __missing__(self, token: str) -> str:
        term = self[token] = term_of(token)
        return term


class _Bare(dict[str, tuple[str, ...]]):
    """The terms of each chunk met so far, the chunk bare of what cannot be part of a token."""

    def __init__(self) -> None:
        super().__init__({"": ()})
        self._terms = _Terms()

    def __missing__(self, bare: str) -> tuple[str, ...]:
        if bare.isalnum():
            found = (term,) if (term := self._terms[bare]) else ()
        else:
            found = tuple(filter(None, map(self._terms.__getitem__, ASCII_TOKEN.findall(bare))))
        self[bare] = found
        return found


def analyse_chunks(chunks: Sequence[str]) -> list[tuple[str, ...]]:
    """`terms` of each chunk, in order.

    All ASCII chunks go through one string, because one call that lower-cases and blanks four megabytes costs less
    than four hundred thousand calls on ten characters. What is left of a chunk is often the same (`(cells),`
    and `cells.`), and is analysed once.
    """
    fast = [chunk if chunk.isascii() and len(chunk) <= MAX_UNITS else "" for chunk in chunks]
    lines = "\n".join(fast).translate(_BARE).split("\n")
    if len(lines) != len(chunks):  # some chunk holds a line break
        return [terms(chunk) for chunk in chunks]
    bare = _Bare()
    found = [bare[line.strip(_MIDS)] for line in lines]
    for at, chunk in enumerate(chunks):
        if not fast[at]:
            found[at] = terms(chunk)
    return found
