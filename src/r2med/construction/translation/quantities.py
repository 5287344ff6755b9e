"""Find numbers and their units in clinical text, in digits and in the words of Chinese and English.

A number in digits is exact and must survive a translation. A number in words ("twice", 三天) is only evidence for a
number in digits on the other side, because languages differ in where they use such words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cache
from importlib.resources import files

from r2med.construction.translation.languages import Language

_WIDE = {
    **{ord("０") + number: str(number) for number in range(10)},
    **{ord("Ａ") + number: chr(ord("A") + number) for number in range(26)},
    **{ord("ａ") + number: chr(ord("a") + number) for number in range(26)},
    **dict(zip(map(ord, "．％／－＋～〜（）＜＞＝×＊"), ".%/-+~~()<>=**", strict=True)),
    **dict.fromkeys(map(ord, "₀₁₂₃₄₅₆₇₈₉"), ""),  # part of a name, as in PaO₂
    ord("℃"): "°C",
    ord("℉"): "°F",
    ord("µ"): "μ",
    ord("½"): " 0.5",
    **{ord("Ⅰ") + number: roman for number, roman in enumerate("I II III IV V VI VII VIII IX X XI XII".split())},
    ord("\u00a0"): " ",
    ord("\u2009"): " ",
    ord("\u202f"): " ",
}
_HAN_DIGITS = {sign: value for value, sign in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_HAN_LARGE = {"万": 10_000, "亿": 100_000_000}
_HAN = "[零〇一二两三四五六七八九十百千万亿]"
_HAN_MEASURE = (
    "(?:余|多|来|几)?(?:[个天周年岁次回秒片粒丸支枚包盒瓶级度期型倍克升斤月处根颗例胎产代项位]|日(?!咳)|指(?!肠)"
    "|小时|分钟|毫[克升米]|公斤|厘米|星期|礼拜|横指)"
)
"""What follows a Chinese number that counts something. 十二指肠 (duodenum) and 百日咳 (pertussis) count nothing."""
_HAN_NUMBER = re.compile(
    rf"第(?P<ordinal>{_HAN}+)|百分之(?P<percent>{_HAN}+)|(?P<below>{_HAN}+)分之(?P<above>{_HAN}+)"
    rf"|(?<![\d.百千万亿])(?![百千万亿])(?P<counted>{_HAN}+)(?={_HAN_MEASURE})(?!年代)|(?P<only_half>半)(?=年|天|小时|个|片|粒|支|月|量|岁)"
)
_HAN_AND_HALF = re.compile(r"(\d+|[一二两三四五六七八九十]+)(个?)(?:(年|天|小时|岁|月|片)半|半(?=月|小时))")

_WORDS = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
        "seventeen eighteen nineteen".split()
    )
} | {word: 10 * value for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)}
_ORDINALS = {
    word: value
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split(), 1
    )
}
_VAGUE: dict[str, int | Decimal] = {
    **_ORDINALS, "thirds": 3, "quarter": 4, "quarters": 4, "fifths": 5, "tenths": 10,
    "once": 1, "twice": 2, "thrice": 3, "double": 2, "both": 2, "pair": 2, "couple": 2, "triple": 3,
    "single": 1, "daily": 1, "qd": 1, "bid": 2, "b.i.d": 2, "tid": 3, "t.i.d": 3, "qid": 4, "q.i.d": 4,
    "half": Decimal("0.5"), "dozen": 12,
}  # fmt: skip
"""English words that may stand for a number, and need not."""
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
MONTHS = {
    month: number
    for number, names in enumerate(
        "jan january|feb february|mar march|apr april|may|jun june|jul july|aug august|sep sept september|oct october|"
        "nov november|dec december".split("|"),
        1,
    )
    for month in names.split()
}
"""English name of a month -> its number."""
_COUNTING_WORD = re.compile(
    rf"\b({'|'.join(word for word, value in _WORDS.items() if value > 1)})"
    rf"(?:-({'|'.join(word for word, value in _WORDS.items() if 0 < value < 10)}))?\b",
    re.IGNORECASE,
)
_AND_A_HALF = re.compile(rf"\b(\d+|{'|'.join(_WORDS)}) and a half\b", re.IGNORECASE)
_IN_NAME = re.compile(r"(?<=[A-Za-z])\d{1,6}|(?<=[A-Za-z]-)\d{1,6}")
"""Digits of names such as HbA1c, IL-6 or CA125."""
_ENGLISH = re.compile(r"[a-z]+(?:\.[a-z])*", re.IGNORECASE)
_RANGE = re.compile(r"\s*(?:-|–|—|~|至|到|to|and|和|或|or|/|、|,|x|\*|±|\+/-)\s*", re.IGNORECASE)
_POWER = re.compile(r"\s*(?:[x*×·]\s*)?10\s*(?:\^|\*\*|\*|E)\s*\(?\s*(\d{1,2})\)?", re.IGNORECASE)
_UNIT_BEFORE = re.compile(r"\b(day|week|month|hour|year)s?\s*$", re.IGNORECASE)


@dataclass(frozen=True)
class Quantity:
    """A number in digits, with the canonical form of the unit that follows it."""

    value: Decimal
    unit: str = ""
    must: bool = False
    """True if the unit must survive a translation."""


@dataclass
class Quantities:
    """The quantities of a text."""

    exact: list[Quantity] = field(default_factory=list)
    """Numbers in digits."""
    words: Counter[Decimal] = field(default_factory=Counter)
    """Numbers in words that count something, such as 三天 or "three days"."""
    vague: set[Decimal] = field(default_factory=set)
    """Numbers that a word may stand for, such as "both" or the name of a month."""
    measured: list[Quantity] = field(default_factory=list)
    """Numbers in digits and in words that count something, for the comparison of units."""

    @property
    def values(self) -> Counter[Decimal]:
        """Number of times that each number occurs in digits."""
        return Counter(quantity.value for quantity in self.exact)


def plain_width(text: str) -> str:
    """Return the text with full-width signs, superscripts and symbols of units in their plain form."""
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
    return text.translate(_WIDE)


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")


def quantities(text: str, language: Language) -> Quantities:
    """Return the quantities of a text in this language."""
    plain, han = plain_width(text), "CJK" in language.script
    plain = _HAN_AND_HALF.sub(_han_half, plain) if han else _AND_A_HALF.sub(_half, plain)
    found = Quantities(exact=list(_exact(plain, language)))
    found.words, found.vague = _han_numbers(plain) if han else _english_numbers(plain)
    digits = _HAN_NUMBER.sub(_han_digits, plain) if han else _COUNTING_WORD.sub(_word_digits, plain)
    found.measured = list(_exact(digits, language))
    found.vague |= {Decimal(digit) for digit in _IN_NAME.findall(plain)}
    return found


def _han_half(match: re.Match[str]) -> str:
    whole = int(match[1]) if match[1].isdigit() else han_value(match[1])
    return f"{whole}.5{match[2]}{match[3] or ''}"


def _half(match: re.Match[str]) -> str:
    whole = match[1].casefold()
    return f"{whole if whole.isdigit() else _WORDS[whole]}.5"


def _han_digits(match: re.Match[str]) -> str:
    return str(han_value(match["counted"])) if match["counted"] else match[0]


def _word_digits(match: re.Match[str]) -> str:
    return str(_WORDS[match[1].casefold()] + _WORDS.get((match[2] or "").casefold(), 0))


# Numbers in digits.


def _number_pattern(language: Language) -> re.Pattern[str]:
    group, point = (r"[.'’ ]", ",") if language.decimal == "," else (r"[,'’]", r"\.")
    grouped = rf"\d{{1,3}}(?:{group}\d{{3}})+(?!\d)"
    return re.compile(rf"(?<![\d.])(?:{grouped}|\d+)(?:{point}\d+)?")


_PATTERNS: dict[str, re.Pattern[str]] = {}


def _exact(text: str, language: Language) -> Iterator[Quantity]:
    """Yield the numbers in digits. In a range such as 5-10 mg, the unit belongs to both numbers."""
    pattern = _PATTERNS.setdefault(language.decimal, _number_pattern(language))
    matches = list(pattern.finditer(text))
    units: list[tuple[str, bool]] = []
    for match in matches:
        unit = unit_at(text, _multiple(text, match.end())[1])
        before = _UNIT_BEFORE.search(text, max(0, match.start() - 8), match.start())
        ordinal = text[max(0, match.start() - 2) : match.start()].rstrip().endswith("第")
        units.append((before[1].lower(), True) if before and not unit[0] else (unit[0], unit[1] and not ordinal))
    for number in range(len(matches) - 2, -1, -1):
        between = text[matches[number].end() : matches[number + 1].start()]
        if not units[number][0] and _RANGE.fullmatch(between):
            units[number] = units[number + 1]
    for match, (name, must) in zip(matches, units, strict=True):
        if not name and match[0].isdigit() and _IN_NAME.match(text, match.start()):
            continue
        if (value := _value(match[0], language)) is not None:
            yield Quantity((value * _multiple(text, match.end())[0]).normalize(), name, must)


def _value(digits: str, language: Language) -> Decimal | None:
    group, point = (".", ",") if language.decimal == "," else (",", ".")
    plain = re.sub(r"['’ ]", "", digits).replace(group, "").replace(point, ".")
    try:
        return Decimal(plain)
    except InvalidOperation:
        return None


_MULTIPLE_AFTER = re.compile(
    r"\s*((?:hundred|thousand|million|billion)\b|百万|千万|万|亿|千(?![克卡帕]))", re.IGNORECASE
)


def _multiple(text: str, end: int) -> tuple[Decimal, int]:
    """Return what a word after a number multiplies it by, and where the word ends."""
    match = _MULTIPLE_AFTER.match(text, end)
    if not match:
        return Decimal(1), end
    sizes = {"百万": 10**6, "千万": 10**7, "千": 1000, **_HAN_LARGE, **_MULTIPLES}
    return Decimal(sizes[match[1].casefold()]), match.end()


# Units.


@cache
def _unit_table() -> tuple[re.Pattern[str], dict[str, tuple[str, bool]]]:
    rows = (files(__package__) / "units.tsv").read_text("utf-8").splitlines()
    forms: dict[str, tuple[str, bool]] = {}
    for row in rows:
        if not row.startswith("#"):
            unit, how, names = row.split("\t")
            for name in names.split():
                forms[_unit_key(plain_width(name))] = (unit, how == "must")
    latin = sorted((name for name in forms if name.isascii() or name[0] in "μ°"), key=len, reverse=True)
    other = sorted((name for name in forms if name not in latin), key=len, reverse=True)
    pattern = rf"(?P<latin>{'|'.join(map(re.escape, latin))})(?![a-zß-ÿ])|(?P<other>{'|'.join(map(re.escape, other))})"
    return re.compile(pattern, re.IGNORECASE), forms


def unit_forms() -> frozenset[str]:
    """Return all forms of units, in lower case."""
    return frozenset(map(str.casefold, _unit_table()[1]))


def _unit_key(name: str) -> str:
    """Return the key of a form. A single letter keeps its case, since 2D is not two days."""
    return name if len(name) == 1 else name.casefold()


_PER = re.compile(r"\s*(?:/|·|per |a (?=day|week)|每(?=[千公升天日分小]))\s*\(?", re.IGNORECASE)
_BETWEEN = re.compile(r"[\s-]{0,2}[余多来几]?")


def unit_at(text: str, start: int) -> tuple[str, bool]:
    """Return the canonical unit at a position, and True if it must survive.

    A quotient such as mg/kg is one unit. "/day" is left out, since "5 mg/d" and "5 mg daily" are the same. What is
    counted per minute or per field is left out too: "80次/分" and "80/min" are the same.
    """
    power = _POWER.match(text, start)
    parts, must, end = ([f"10^{power[1]}"], True, power.end()) if power else ([], False, start)
    while atom := _next_atom(text, end, first=not parts):
        name, needed, end = atom
        parts.append(name)
        must = must or needed
    if len(parts) > 1 and parts[0] in ("time", "piece"):
        parts[0] = ""
    return "/".join(part for number, part in enumerate(parts) if not number or part not in ("day", "time")), must


def _next_atom(text: str, start: int, first: bool) -> tuple[str, bool, int] | None:
    """Return the next part of a unit: its canonical form, True if it must survive, and where it ends."""
    pattern, forms = _unit_table()
    per = _PER.match(text, start)
    if not (first or per):
        return None
    gap = per or _BETWEEN.match(text, start)
    assert gap is not None
    match = pattern.match(text, gap.end())
    key = _unit_key(match[0]) if match else ""
    if match is None or key not in forms or (first and key in "年日" and _is_date(text, match.start())):
        return None
    unit, must = ("minute", True) if per and key == "分" else forms[key]
    return f"/{unit}" if first and per else unit, must, match.end()


def _is_date(text: str, start: int) -> bool:
    """Return True if the sign at this position is part of a date, as in 2019年3月5日."""
    before = re.search(r"(\d+)\s*$", text[max(0, start - 6) : start])
    if text[start] == "年":
        return bool(before and len(before[1]) == 4)
    return bool(re.search(r"月\s*\d+\s*$", text[max(0, start - 6) : start]))


# Numbers in words.


_ROMAN = {name: value for value, name in enumerate("II III IV V VI VII VIII IX X XI XII".split(), 2)}
_ROMAN_WORD = re.compile(r"(?<![A-Za-z])[IVX]+(?![A-Za-z])")


def _roman_numbers(text: str) -> set[Decimal]:
    return {Decimal(_ROMAN[word]) for word in _ROMAN_WORD.findall(text) if word in _ROMAN}


def _han_numbers(text: str) -> tuple[Counter[Decimal], set[Decimal]]:
    """Return the Chinese numbers that count something, and the values of all signs of numbers."""
    words: Counter[Decimal] = Counter()
    vague = _roman_numbers(text) | {Decimal(_HAN_DIGITS[sign]) for sign in text if sign in _HAN_DIGITS}
    vague |= {Decimal(han_value(run)) for run in re.findall(rf"{_HAN}+", text)}
    vague |= {Decimal(2) for _ in re.findall("双", text)} | {Decimal("0.5") for _ in re.findall("半", text)}
    for match in _HAN_NUMBER.finditer(text):
        for name in ("ordinal", "percent", "below", "above", "counted"):
            if match[name]:
                words[Decimal(han_value(match[name]))] += 1
        if match["only_half"]:
            words[Decimal("0.5")] += 1
    return words, vague


def han_value(sign: str) -> int:
    """Return the value of a Chinese number, such as 42 for 四十二, or 2019 for the row of digits 二〇一九."""
    if not any(unit in sign for unit in (*_HAN_TENS, *_HAN_LARGE)):
        return int("".join(str(_HAN_DIGITS[each]) for each in sign))
    total, section, digit = 0, 0, 0
    for each in sign:
        if each in _HAN_DIGITS:
            digit = _HAN_DIGITS[each]
        elif each in _HAN_TENS:
            section += (digit or 1) * _HAN_TENS[each]
            digit = 0
        else:
            total = (total + section + digit or 1) * _HAN_LARGE[each]
            section = digit = 0
    return total + section + digit


def _english_numbers(text: str) -> tuple[Counter[Decimal], set[Decimal]]:
    """Return the number words that count something, and the values that other words may stand for."""
    words: Counter[Decimal] = Counter()
    vague = _roman_numbers(text)
    tokens = [match[0].casefold() for match in _ENGLISH.finditer(text.replace("-", " "))]
    position = 0
    while position < len(tokens):
        token = tokens[position]
        following = tokens[position + 1] if position + 1 < len(tokens) else ""
        if token in _WORDS:
            value = Decimal(_WORDS[token])
            if value >= 20 and 0 < _WORDS.get(following, 0) < 10:
                value += _WORDS[following]
                position += 1
                following = tokens[position + 1] if position + 1 < len(tokens) else ""
            if following in _MULTIPLES:
                value *= _MULTIPLES[following]
                position += 1
            (vague.add(value) if value == 1 else words.update([value]))
        elif token in _VAGUE or token in MONTHS:
            vague.add(Decimal(_VAGUE.get(token, MONTHS.get(token, 0))))
        position += 1
    return words, vague
