"""Compare a sentence with its translation back by critical words: numbers, sides, relatives, time, drugs, negations.

Both are in the same language, so that the same words must come back in the same order. Each kind of words is compared
by itself, because translations reorder parts of a sentence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from itertools import groupby

from r2med.construction.translation.languages import Language

_WIDE = str.maketrans(
    dict(zip("０１２３４５６７８９．％／－＋～〜（）µ×＊", "0123456789.%/-+~~()μ**", strict=True))
    | {"℃": "°C", "℉": "°F", "½": " 0.5", "\u00a0": " ", "\u2009": " ", "\u202f": " "}
    | dict.fromkeys("₀₁₂₃₄₅₆₇₈₉", "")  # part of a name, as in PaO₂
)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_POWER = re.compile(r"\s*[*x·]\s*10\s?\^\s?(\d{1,2})", re.IGNORECASE)
_HAN_DIGITS = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_HAN = "[零〇一二两三四五六七八九十百千万]"
_HAN_COUNT = re.compile(
    rf"(?<![\d.])(?P<n>{_HAN}+)(?=[余多来几]?(?:[个天周年岁次回秒片粒丸支枚级度期倍克升斤月%]|日(?!咳)|指(?!肠|甲)|小时|分钟|毫[克升米]|公斤|厘米|星期|单位))"
)
"""A Chinese number that counts something. 十二指肠 (duodenum) and 百日咳 (pertussis) count nothing."""
_HAN_HALF = re.compile(r"(\d+)(个?)(年|天|小时|岁|月|片)半")
_LARGE = {"万": 10_000, "亿": 100_000_000, "thousand": 1000, "million": 1_000_000}
_RANGE = re.compile(r"\s*(?:-|–|~|至|到|to|/|\*|±)\s*", re.IGNORECASE)
_DURATIONS = frozenset(("", "?", "day", "week", "month", "year", "hour"))
Quantity = tuple[Decimal, str]
"""A number and its unit."""
WILD = "?"
"""A unit that a translation may leave out or exchange for another of its kind, such as 次 or 岁."""


def critical_faults(source: str, back: str, language: Language) -> Iterator[str]:
    """Yield what differs between a sentence and its translation back, such as "side lost: left"."""
    ours, theirs = _spelled(source, language), _spelled(back, language)
    for kind, pattern in language.critical.items():
        yield from _list_faults(
            kind, *([each.lastgroup or "" for each in pattern.finditer(text)] for text in (ours, theirs))
        )
    yield from _list_faults(
        "drug", *([each[0].casefold() for each in language.drug.finditer(text)] for text in (ours, theirs))
    )
    yield from _quantity_faults(quantities(ours, language), quantities(theirs, language))


def _list_faults(kind: str, ours: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    """Yield the words that were lost, added or exchanged. A translation may repeat a word more often or less often."""
    lost, added = set(ours) - set(theirs), set(theirs) - set(ours)
    if lost:
        yield f"{kind} lost: {', '.join(sorted(lost))}"
    if added:
        yield f"{kind} added: {', '.join(sorted(added))}"
    once = ([word for word, _ in groupby(words)] for words in (ours, theirs))
    for here, there in ((ours, theirs), tuple(once)) if not (lost or added) else ():
        if len(here) == len(there) and here != there:
            yield f"{kind} moved: {', '.join(here)} became {', '.join(there)}"
            return


def _quantity_faults(ours: Sequence[Quantity], theirs: Sequence[Quantity]) -> Iterator[str]:
    """Yield the numbers that were lost or added, their units that changed, and numbers of one unit that were moved."""
    here, there = Counter(value for value, _ in ours), Counter(value for value, _ in theirs)
    if lost := here - there:
        yield f"number lost: {', '.join(map(_shown, lost))}"
    if added := there - here:
        yield f"number added: {', '.join(map(_shown, added))}"
    if lost or added:
        return
    changed = False
    for (value, unit), (_, other) in zip(sorted(ours), sorted(theirs), strict=True):
        may_differ = WILD in (unit, other) or ("" in (unit, other) and {unit, other} <= _DURATIONS)  # aged 44, day 5
        if unit != other and not may_differ:
            yield f"unit changed: {_shown(value)} {unit} became {_shown(value)} {other}"
            changed = True
    for unit in dict.fromkeys(unit for _, unit in ours) if not changed else ():
        values, others = ([value for value, each in side if each == unit] for side in (ours, theirs))
        if sorted(values) == sorted(others) and values != others:
            yield f"number moved: {', '.join(map(_shown, values))} became {', '.join(map(_shown, others))}"


def _shown(value: Decimal) -> str:
    return f"{value:f}"


def _spelled(text: str, language: Language) -> str:
    """Return a text in lower case with plain signs, and with digits for the numbers in words that count something."""
    text = (
        re.sub("[⁰¹²³⁴⁵⁶⁷⁸⁹]+", lambda run: "^" + run[0].translate(_SUPERSCRIPTS), text)
        .translate(_WIDE)
        .replace("mm Hg", "mmHg")
    )
    for form, plain in language.spelled.items():
        text = form.sub(plain, text)
    if "CJK" in language.script:
        text = _HAN_COUNT.sub(lambda match: str(han_value(match["n"])), text)
        return _HAN_HALF.sub(r"\1.5\2\3", text)
    words = "|".join(language.numbers)
    tens = re.compile(rf"\b({words})(?:-({words}))?\b", re.IGNORECASE)
    return tens.sub(lambda match: str(sum(language.numbers[word.lower()] for word in match.groups() if word)), text)


def han_value(sign: str) -> int:
    """Return the value of a Chinese number, such as 42 for 四十二, or 2019 for the row of digits 二〇一九."""
    if not set(sign) & set(_HAN_UNITS):
        return int("".join(str(_HAN_DIGITS[each]) for each in sign))
    total = digit = 0
    for each in sign:
        if each in _HAN_DIGITS:
            digit = _HAN_DIGITS[each]
        elif each == "万":
            total, digit = (total + digit) * _HAN_UNITS[each], 0
        else:
            total, digit = total + (digit or 1) * _HAN_UNITS[each], 0
    return total + digit


def quantities(text: str, language: Language) -> list[Quantity]:
    """Return the numbers of a text, each with its unit: empty without one, WILD for one that may be left out.

    Digits of names such as IL-6 are left out, and 1 where it may be written as an article, as in "a week".
    """
    articles = _DURATIONS if language.spaced else frozenset(("", WILD))
    group, point = (r"[.'’ ]", ",") if language.decimal == "," else (r"[,'’]", r"\.")
    number = re.compile(rf"(?<![\d.])(?:\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)(?:{point}\d+)?")
    found: list[Quantity] = []
    matches, end = list(number.finditer(text)), 0
    for place, match in enumerate(matches):
        if match.start() < end:  # the 10^9 of an earlier number
            continue
        plain = re.sub(group, "", match[0]).replace(",", ".")
        value, end = _scaled(Decimal(plain), text, match.end())
        unit = _unit(text, end)
        for before, after in zip(matches[place:], matches[place + 1 :], strict=False):  # 5-10 mg: both are mg
            if unit or not _RANGE.fullmatch(text, before.end(), after.start()):
                break
            unit = _unit(text, after.end())
        in_name = not unit and re.search(r"[A-Za-z]-?$", text[max(0, match.start() - 2) : match.start()])
        if not in_name and not (value == 1 and unit in articles):
            found.append((value.normalize(), unit))
    return found


def _scaled(value: Decimal, text: str, end: int) -> tuple[Decimal, int]:
    """Return a number multiplied by a power of ten or by a word such as 万 after it, and where that ends."""
    if power := _POWER.match(text, end):
        return value.scaleb(int(power[1])), power.end()
    large = re.compile(rf"\s?({'|'.join(_LARGE)})", re.IGNORECASE).match(text, end)
    return (value * _LARGE[large[1].lower()], large.end()) if large else (value, end)


@cache
def _units() -> tuple[re.Pattern[str], dict[str, str]]:
    forms: dict[str, str] = {}
    for row in (files(__package__) / "units.tsv").read_text("utf-8").splitlines():
        if not row.startswith("#"):
            unit, how, names = row.split("\t")
            forms |= {_unit_key(name.translate(_WIDE)): unit if how == "must" else WILD for name in names.split()}
    names = "|".join(map(re.escape, sorted(forms, key=len, reverse=True)))
    return re.compile(rf"(?:{names})(?![a-zß-ÿ])(?!(?<=升)[高至])", re.IGNORECASE), forms


def _unit_key(name: str) -> str:
    """Return the key of a form. A single letter keeps its case, since 2D is not two days."""
    return name if len(name) == 1 else name.casefold()


def unit_forms() -> frozenset[str]:
    """Return all forms of units, in lower case."""
    return frozenset(map(str.casefold, _units()[1]))


def _unit(text: str, end: int) -> str:
    """Return the canonical unit at a position. A quotient such as mg/kg is one unit. A frequency (/day) is no unit."""
    pattern, forms = _units()
    parts: list[str] = []
    gap = re.compile(r"[\s-]{0,2}[余多来几]?(?P<per>/|每|per )?").match(text, end)
    while gap and (match := pattern.match(text, gap.end())) and _unit_key(match[0]) in forms:
        unit = "minute" if gap["per"] and match[0] == "分" else forms[_unit_key(match[0])]
        if not (gap["per"] and unit == "day"):
            parts.append(f"/{unit}" if gap["per"] else unit)
        gap = re.compile(r"\s?(?P<per>/|每(?=[千公升分小])|per )\s?").match(text, match.end())
    return "".join(part for part in parts if part != WILD or len(parts) == 1)
