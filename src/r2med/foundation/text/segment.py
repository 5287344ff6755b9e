"""Cut text into the tokens of Lucene's StandardTokenizer: UAX #29 words and emoji sequences."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import accumulate

# Lucene scans through a buffer of this many UTF-16 units and sees nothing beyond it, so a longer token ends
# where the longest match inside the buffer ends, and the next one starts there.
MAX_UNITS = 255

# The grammar, in the symbols of `SYMBOLS`. Lucene takes the longest match. Greedy patterns find it
# because the next symbols decide every choice below. Only for a letter that is also an emoji both ways are tried.
_EXT = "[xzvVektTM]*+"  # UAX #29 WB4: marks belong to the character before them
_EMOJI_EXT = "[xzektTM]*+"  # inside emoji the two presentation selectors are kept apart
_LETTER = f"[ahi]{_EXT}"
_DIGIT = f"0{_EXT}"
_JOINER = f"_{_EXT}"

# A run of letters and digits is a row of pieces. Only a Hebrew letter that opens a piece can take a quote,
# so Lucene's grammar is narrower than UAX #29: it splits ה"ה"ה into ה"ה and ה.
_PIECE = f"h{_EXT}(?:'{_EXT}|\"{_EXT}h{_EXT})|{_LETTER}(?:[:.']{_EXT}{_LETTER})*+|{_DIGIT}(?:[,.']{_EXT}{_DIGIT})*+"
_RUN = f"(?:(?:{_PIECE})++|(?:K{_EXT})++)"  # letters and katakana meet only over a joiner
_WORD = f"(?:{_JOINER})*+{_RUN}(?:(?:{_JOINER})++{_RUN})*+(?:{_JOINER})*+"

_EMOJI = f"(?:z*+[Pi]{_EMOJI_EXT}V?+|M{_EMOJI_EXT})"
# The joiner between two emoji was already matched as an extension of the first one, unless U+FE0F is between them.
_EMOJI_SEQUENCE = f"{_EMOJI}(?:t++T|(?:(?:z|(?<=z)){_EMOJI})*+)"
_KEYCAP = "#[xzektTM]*V?k[xzektTM]*+"  # must give marks back: the keycap is a mark itself
_FLAG = f"R{_EXT}R{_EXT}"

_PLAIN = "|".join((_WORD, f"[ce]{_EXT.replace('[', '[c')}", f"s{_EXT}", _FLAG, _KEYCAP))
_TOKEN = re.compile(f"{_PLAIN}|{_EMOJI_SEQUENCE}")
_EMOJI_TOKEN = re.compile(_EMOJI_SEQUENCE)
_SURROGATE = re.compile("[\ud800-\udfff]")


def segment(text: str) -> list[str]:
    """Return the tokens of `text`, as written, in order.

    One difference from Lucene remains. Half a surrogate pair at the very end of a text makes Lucene's buffer report the
    end early, and up to 255 units before it are lost or cut, depending on the position of the buffer. Here nothing is
    lost.
    """
    if _SURROGATE.search(text):  # two halves of one character are one character to Java
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    classes = text.translate(_classes)
    if 2 * len(text) <= MAX_UNITS and "i" not in classes:
        return [text[slice(*match.span())] for match in _TOKEN.finditer(classes)]
    return [text[first:last] for first, last in _spans(classes, _unit_offsets(text))]


def _unit_offsets(text: str) -> list[int]:
    """Return the offset of each character, and of the end, in UTF-16 units."""
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


# One symbol per class of the table. The grammar above is written in these symbols.
SYMBOLS = {
    "letter": "a",  # ALetter, Hangul included
    "hebrew": "h",  # a letter that quotes may follow
    "digit": "0",
    "katakana": "K",
    "joiner": "_",  # ExtendNumLet: joins letters, digits and katakana
    "mid_letter": ":",  # joins two letters
    "mid_number": ",",  # joins two digits
    "mid_both": ".",  # joins two letters or two digits
    "single_quote": "'",  # as mid_both, and may end a Hebrew word
    "double_quote": '"',  # joins two Hebrew letters
    "single": "s",  # an ideograph or a hiragana: a token of its own
    "complex": "c",  # South-East-Asian scripts: a run is one token
    "complex_extend": "e",  # the same, and it also extends the character before it
    "extend": "x",  # combining marks and format characters
    "zwj": "z",  # extends as well; between emoji it glues
    "text_style": "v",  # U+FE0E: extends, but not inside an emoji
    "emoji_style": "V",  # U+FE0F: extends; inside an emoji only where the emoji grammar allows it
    "emoji": "P",
    "emoji_letter": "i",  # both a letter and an emoji
    "skin_tone": "M",  # an emoji if it is alone, otherwise it extends as well
    "flag": "R",  # regional indicator
    "keycap_base": "#",  # not the digits, because a number includes a keycap after its digit anyway
    "keycap": "k",  # U+20E3: extends as well
    "tag": "t",  # extends as well
    "tag_end": "T",  # extends as well
}
OTHER = "o"


class _Classes(dict[int, str]):
    """Code point -> the symbol of its class. A `str.translate` table that looks up a character when it first occurs."""

    def __missing__(self, code_point: int) -> str:
        firsts, lasts, symbols = _ranges()
        index = bisect_right(firsts, code_point) - 1
        symbol = symbols[index] if index >= 0 and code_point <= lasts[index] else OTHER
        self[code_point] = symbol
        return symbol


_classes = _Classes()


@cache  # plain ASCII text never reads the file
def _ranges() -> tuple[list[int], list[int], list[str]]:
    """Return the first and the last code point of each range of characters, and the symbol of its class."""
    table = files(__package__).joinpath("word_break.tsv").read_text(encoding="ascii")
    rows = [row.split("\t") for row in table.splitlines() if not row.startswith("#")]
    return [int(row[0], 16) for row in rows], [int(row[1], 16) for row in rows], [SYMBOLS[row[2]] for row in rows]
