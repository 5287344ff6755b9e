"""Cut text into the tokens of Lucene's StandardTokenizer: UAX #29 words and emoji sequences."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

from r2med.text.word_break import symbols

# Lucene scans through a buffer of this many UTF-16 units and sees nothing beyond it, so a longer token ends
# where the longest match inside the buffer ends, and the next one starts there.
MAX_UNITS = 255

# The grammar, in the symbols of `word_break.SYMBOLS`. Lucene takes the longest match. Greedy patterns find it
# because the next symbols settle every choice below; only for a letter that is an emoji both ways are tried.
_EXT = "[xzvVektTM]*+"  # UAX #29 WB4: marks belong to the character before them
_EMOJI_EXT = "[xzektTM]*+"  # inside emoji the two presentation selectors are kept apart
_LETTER = f"[ahi]{_EXT}"
_DIGIT = f"0{_EXT}"
_JOINER = f"_{_EXT}"

# A run of letters and digits is a row of pieces. Only a Hebrew letter that opens a piece can take a quote,
# which is where Lucene's grammar is narrower than UAX #29: of ה"ה"ה it keeps ה"ה and ה apart.
_PIECE = f"h{_EXT}(?:'{_EXT}|\"{_EXT}h{_EXT})|{_LETTER}(?:[:.']{_EXT}{_LETTER})*+|{_DIGIT}(?:[,.']{_EXT}{_DIGIT})*+"
_RUN = f"(?:(?:{_PIECE})++|(?:K{_EXT})++)"  # letters and katakana meet only over a joiner
_WORD = f"(?:{_JOINER})*+{_RUN}(?:(?:{_JOINER})++{_RUN})*+(?:{_JOINER})*+"

_EMOJI = f"(?:z*+[Pi]{_EMOJI_EXT}V?+|M{_EMOJI_EXT})"
# The joiner that glues was already taken as an extension of the emoji before it, unless U+FE0F stood between.
_EMOJI_SEQUENCE = f"{_EMOJI}(?:t++T|(?:(?:z|(?<=z)){_EMOJI})*+)"
_KEYCAP = "#[xzektTM]*V?k[xzektTM]*+"  # must give marks back: the keycap is a mark itself
_FLAG = f"R{_EXT}R{_EXT}"

_PLAIN = "|".join((_WORD, f"[ce]{_EXT.replace('[', '[c')}", f"s{_EXT}", _FLAG, _KEYCAP))
_TOKEN = re.compile(f"{_PLAIN}|{_EMOJI_SEQUENCE}")
_EMOJI_TOKEN = re.compile(_EMOJI_SEQUENCE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def segment(text: str) -> list[str]:
    """Return the tokens of `text`, as written, in order.

    One difference from Lucene is left: half a surrogate pair at the very end of a text makes its buffer
    report the end early, and up to 255 units before it are lost or cut, depending on where the buffer fell in
    the whole text. Here nothing is lost.
    """
    if _SURROGATE.search(text):  # two halves of one character are one character to Java
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    classes = symbols(text)
    if 2 * len(text) <= MAX_UNITS and "i" not in classes:
        return [text[slice(*match.span())] for match in _TOKEN.finditer(classes)]
    return [text[first:last] for first, last in _spans(classes, _unit_offsets(text))]


def _unit_offsets(text: str) -> list[int]:
    """Return where each character, and the end, lies in UTF-16 units."""
    return list(accumulate((1 + (character > "\uffff") for character in text), initial=0))


def _spans(classes: str, offsets: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the token spans of a text that may overflow the buffer or hold characters of two grammars."""
    first = 0
    while first < len(classes):
        window = bisect_right(offsets, offsets[first] + MAX_UNITS) - 1
        matches = (pattern.match(classes, first, window) for pattern in (_TOKEN, _EMOJI_TOKEN))
        last = max((match.end() for match in matches if match), default=first)
        if last > first:
            yield first, last
        first = max(last, first + 1)
