"""Find the encoding of a file of text. A guess is only taken if its result looks like words."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.notices import Notice, Setting

FOREIGN_SHARE = 0.15
"""Maximum share of the different words with accents that are foreign, such as names. One may always be."""
FEW_ACCENTS = 0.01
"""Share of letters with accents below which they may come from any western languages, as in a list of names."""
CONTROL_SHARE = 0.02
"""Share of control characters above which a file is no text, such as a picture. Random bytes have 10 %."""
SAMPLE_BYTES = 1 << 20
"""Number of bytes from which the likely encodings are guessed."""

_WESTERN = {
    "de": "äöüß",
    "fr": "àâæçéèêëîïôœùûüÿ",
    "es": "áéíóúüñ",
    "pt": "áâãàçéêíóôõúü",
    "it": "àèéìíîòóùú",
    "nl": "éëïíóöüáèê",
    "da": "æøåéóôà",
    "sv": "åäöéü",
    "is": "áðéíóúýþæö",
    "et": "õäöüšž",
    "ca": "àçéèíïóòúü",
    "hr": "šž",
}
_ALPHABETS: dict[str, dict[str, str]] = {
    "gb18030": {"zh": "\u4e00-\u9fff，。、；：？！（）“”《》"},
    "big5": {"zh": "\u4e00-\u9fff，。、；：？！（）「」"},
    "shift_jis": {"ja": "\u3041-\u30ff\u4e00-\u9fff、。「」？！（）・ー"},
    "euc-jp": {"ja": "\u3041-\u30ff\u4e00-\u9fff、。「」？！（）・ー"},
    "cp949": {"ko": "\uac00-\ud7a3"},
    "cp1251": {"ru": "а-яёА-ЯЁ"},
    "koi8-r": {"ru": "а-яёА-ЯЁ"},
    "cp866": {"ru": "а-яёА-ЯЁ"},
    "cp1250": {"pl": "ąćęłńóśźż", "cs": "áčďéěíňóřšťúůýž", "hu": "áéíóöőúüű", "ro": "ăâîşţ", "hr": "čćđšž"},
    "iso-8859-2": {"pl": "ąćęłńóśźż", "cs": "áčďéěíňóřšťúůýž", "hu": "áéíóöőúüű", "ro": "ăâîşţ", "hr": "čćđšž"},
    "cp1254": {"tr": "çğıöşüâî"},
    "cp1253": {"el": "α-ωάέήίόύώϊϋΑ-Ω"},
    "cp1255": {"he": "\u05d0-\u05ea"},
    "cp1256": {"ar": "\u0621-\u064a\u067e\u0686\u0698\u06af"},
    "cp874": {"th": "\u0e01-\u0e5b"},
    "cp1257": {"lt": "ąčęėįšųūž", "lv": "āčēģīķļņšūž"},
    "cp1258": {"vi": "ăâđêôơưàáéèíìóòúùý"},
    "cp1252": _WESTERN,
    "cp850": _WESTERN,
    "mac-roman": _WESTERN,
}
"""Encoding -> the letters beyond ASCII of the languages for which it is used."""

_COMMON = {
    "ru": "оеаинтсрвлкмдпуя",
    "el": "αοιετσνηυρπκμλ",
    "he": "יוהלאמתרבש",
    "ar": "اليمنرتبوعد",
    "th": "านรอกเงยลมว่ี",
    "zh": "的是不了在有我這这为為和患者无無年月日后後",
    "ja": "のにはをがとでたしるてあいなれか、。",
    "ko": "이다는에하고의은을가있지으로자도인없부터",
}
"""Common characters of languages whose letters are the same bytes as those of other languages."""
_OTHER_SCRIPTS = frozenset(_COMMON)
_UNSPACED = frozenset({"zh", "ja", "ko"})
_NOT_FOR_FILES = frozenset({"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"})
_INSIDE = "’‘´·–—‑­ /°'-"
"""Signs that may be between the letters of a word."""
_ANY_WESTERN = re.compile(f"[a-z{''.join(_WESTERN.values())}{_INSIDE}]+", re.IGNORECASE)
_LETTER = r"[^\W\d_ªº²³¹¼½¾]"
_WORD = re.compile(rf"{_LETTER}(?:[^\s\x00-\x7f]|[A-Za-z])*{_LETTER}|{_LETTER}")
"""From the first to the last letter, with all signs beyond ASCII between them."""
_TWO_BYTES = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}")
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_HIGH = re.compile(rb"[\x80-\xff]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def text_encoding(path: Path, given: str = "") -> tuple[str, tuple[str, ...]]:
    """Return the encoding of a file and a notice if it is not UTF-8 or UTF-16. `given` is what the user said.

    Raises UserError if the file cannot be decoded, or if it could be in several encodings. The error names two.
    """
    if given:
        return _given(path, given), ()
    with path.open("rb") as file:
        head = file.read(4096)
    marked = next((encoding for mark, encoding in _MARKS if head.startswith(mark)), "")
    marked = marked or ("utf-16-le" if head[1:2] == b"\0" else "utf-16-be" if head[:1] == b"\0" else "")
    line = _first_fault(path, marked or "utf-8")
    if line and marked:
        raise UserError(f"{path}:{line}: damaged or cut off, as it is not {_name(marked)}: copy or export it again")
    if not line:
        return marked or "utf-8", ()
    if len(_CONTROL.findall(head)) > CONTROL_SHARE * len(head):
        raise UserError(f"{path}: it holds no text: export the table again as CSV in UTF-8")
    # If a few bytes of a UTF-8 file are Windows-1252, reading all of it as Windows-1252 would spoil every other accent.
    if _is_mostly_utf8(path):
        raise UserError(f"{path}:{line}: not UTF-8, as the rest of the file is: save it as UTF-8")
    if _first_fault(path, "cp1252") or not _is_western(_sample(path, "cp1252")):
        raise UserError(f"{path}:{line}: not UTF-8: ", _likely(path))
    return "cp1252", (f"{path.name} is not UTF-8: it is read as Windows-1252",)


def _given(path: Path, given: str) -> str:
    try:
        encoding = codecs.lookup(given).name
        b"ab".decode(given, "ignore")  # refuses what is no encoding of text, such as base64
        is_text = encoding not in _NOT_FOR_FILES
    except (LookupError, ValueError):
        is_text = False
    if not is_text:
        raise UserError(
            Setting("import_data", encoding=given), ": no such encoding: use utf-8, cp1252, gb18030, shift_jis, …"
        )
    if encoding == "utf-8":
        encoding = "utf-8-sig"  # a mark at the start is not part of the first name
    if line := _first_fault(path, encoding):
        raise UserError(f"{path}:{line}: not {given}: ", _likely(path, but=given))
    return encoding


def _likely(path: Path, but: str = "") -> str:
    """Return advice that names two likely encodings, the likelier one first."""
    scores = {encoding: _score(path, encoding) for encoding in _ALPHABETS}
    ranked = [name for name in sorted(scores, key=lambda name: -scores[name]) if name != but and scores[name] > 0]
    first, second = [*ranked, "cp1252", "gb18030"][:2]
    return Notice(
        f"it may be {first} or {second}: save it as UTF-8 (r2med data import also reads it with ",
        Setting("import_data", encoding=first),
        " or ",
        Setting("import_data", encoding=second),
        ")",
    )


def _sample(path: Path, encoding: str) -> str:
    with path.open("rb") as file:
        return codecs.getincrementaldecoder(encoding)("ignore").decode(file.read(SAMPLE_BYTES))


def _is_western(text: str) -> bool:
    """Return True if a text that was decoded as Windows-1252 looks like words of a western language."""
    words = [word for word in _WORD.findall(text) if not word.isascii()]
    if any(not _ANY_WESTERN.fullmatch(word) for word in words):
        return False
    accents = sum(not letter.isascii() for word in words for letter in word)
    if accents < FEW_ACCENTS * sum(map(str.isalpha, text)):
        return True
    words = sorted({word.lower() for word in words})
    known = [re.compile(f"[a-z{letters}{_INSIDE}]+", re.IGNORECASE) for letters in _WESTERN.values()]
    own = max((sum(bool(each.fullmatch(word)) for word in words) for each in known), default=0)
    return len(words) - own <= max(int(len(words) > 2), FOREIGN_SHARE * len(words))


def _score(path: Path, encoding: str) -> float:
    """Return how much a file looks like words of one language that uses the encoding."""
    if _first_fault(path, encoding):
        return 0.0
    text = _sample(path, encoding)
    signs = [match for match in re.finditer(r"[^\x00-\x7f]", text) if _counts(text, match)]
    best = 0.0
    for language, alphabet in _ALPHABETS[encoding].items():
        known = re.compile(f"[{alphabet}]", re.IGNORECASE)
        good = sum(bool(known.fullmatch(sign[0])) and _fits(text, sign, language) for sign in signs)
        common = sum(sign[0].lower() in _COMMON.get(language, "") for sign in signs)
        best = max(best, (good + common / 2) / max(len(signs), 1))
    return best


def _counts(text: str, match: re.Match[str]) -> bool:
    """Return True for a letter, and for another sign inside a word."""
    if match[0].isalpha():
        return True
    before, after = _neighbours(text, match)
    return before.isalpha() and after.isalpha() and match[0] not in _INSIDE


def _fits(text: str, match: re.Match[str], language: str) -> bool:
    """Return False for a capital letter inside a word, and for a letter of another script inside a word."""
    before, after = _neighbours(text, match)
    latin = [each.isascii() and each.isalpha() for each in (before, after)]
    if language in _OTHER_SCRIPTS and (all(latin) if language in _UNSPACED else any(latin)):
        return False
    return not (match[0].isupper() and before.isalpha())


def _neighbours(text: str, match: re.Match[str]) -> tuple[str, str]:
    start = match.start()
    return text[start - 1 : start] if start else "", text[match.end() : match.end() + 1]


def _name(encoding: str) -> str:
    return encoding.upper()[:6].rstrip("-")


def _blocks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while block := file.read(1 << 16):
            yield block


def _first_fault(path: Path, encoding: str) -> int:
    """Return the first line that cannot be decoded; 0 if all can."""
    decoder = codecs.getincrementaldecoder(encoding)()
    line = 1
    try:
        for block in _blocks(path):
            line += decoder.decode(block).count("\n")
        decoder.decode(b"", final=True)
    except UnicodeDecodeError as error:
        # The bytes before the fault in this decoder call are whole characters.
        return line + codecs.decode(error.object[: error.start], encoding, "ignore").count("\n")
    return 0


def _is_mostly_utf8(path: Path) -> bool:
    with path.open("rb") as file:
        content = file.read(1 << 24)
    pairs = _TWO_BYTES.findall(content)
    return 2 * sum(map(len, pairs)) > len(_HIGH.findall(content))
