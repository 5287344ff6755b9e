"""The word-break class of each character, one symbol a character, read from `word_break.tsv`."""

from bisect import bisect_right
from functools import cache
from importlib.resources import files

# One symbol per class of the table; `segment.py` spells its grammar in these.
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
    "complex_extend": "e",  # the same, and it also extends what stands before it
    "extend": "x",  # combining marks and format characters
    "zwj": "z",  # extends as well; between emoji it glues
    "text_style": "v",  # U+FE0E: extends, but not inside an emoji
    "emoji_style": "V",  # U+FE0F: extends; inside an emoji only where the emoji grammar says
    "emoji": "P",
    "emoji_letter": "i",  # both a letter and an emoji
    "skin_tone": "M",  # an emoji where it stands alone; else it extends as well
    "flag": "R",  # regional indicator
    "keycap_base": "#",  # not the digits: as a number, a digit takes the keycap along anyway
    "keycap": "k",  # U+20E3: extends as well
    "tag": "t",  # extends as well
    "tag_end": "T",  # extends as well
}
OTHER = "o"


class _Classes(dict[int, str]):
    """A `str.translate` table that looks a code point up in the ranges when it is first met."""

    def __init__(self) -> None:
        super().__init__()
        table = files(__package__).joinpath("word_break.tsv").read_text(encoding="ascii")
        rows = [row.split("\t") for row in table.splitlines() if not row.startswith("#")]
        self._firsts = [int(first, 16) for first, _, _ in rows]
        self._lasts = [int(last, 16) for _, last, _ in rows]
        self._symbols = [SYMBOLS[name] for _, _, name in rows]

    def __missing__(self, code_point: int) -> str:
        index = bisect_right(self._firsts, code_point) - 1
        symbol = self._symbols[index] if index >= 0 and code_point <= self._lasts[index] else OTHER
        self[code_point] = symbol
        return symbol


@cache
def _classes() -> _Classes:
    return _Classes()  # on first need: plain ASCII text never reads the file


def symbols(text: str) -> str:
    """Return the class symbol of each character of `text`."""
    return text.translate(_classes())
