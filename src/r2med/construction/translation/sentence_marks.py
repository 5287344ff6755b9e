"""Mark what people should look at in a translated sentence: numbers and negations that changed on the way back.

The sentence and the translation of its translation are in the same language, so that the same numbers and negations
must come back. A sentence without a mark is not proved right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from itertools import groupby

from r2med.construction.translation.chrf import chrf
from r2med.construction.translation.languages import Language

NOT_TRANSLATED, NO_BACK = "not translated", "no usable translation back"
NUMBER_LOST, NUMBER_ADDED = "number lost", "number added"
NEGATION_LOST, NEGATION_ADDED, NEGATION_MOVED = "negation lost", "negation added", "negation moved"
SAME_CLAUSE = 60
"""Smallest chrF of two clauses without their cues that are taken for the same clause."""

_WIDE = str.maketrans(
    dict(zip("０１２３４５６７８９．％", "0123456789.%", strict=True))
    | dict.fromkeys("₀₁₂₃₄₅₆₇₈₉", "")  # part of a name, as in PaO₂
    | {"½": " 0.5"}
)
_POWER = re.compile(r"\s*[*x×·＊]\s*10\s?(?:\^\s?(\d{1,2})|([⁰¹²³⁴⁵⁶⁷⁸⁹]+))", re.IGNORECASE)
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
_HAN_DIGITS = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_HAN_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_HAN = "[零〇一二两三四五六七八九十百千万]"
_HAN_COUNT = re.compile(
    rf"(?<![\d.])(?P<n>{_HAN}+)(?=[余多来几]?(?:[个天周年岁次回秒片粒丸支枚级度期倍克升斤月%]|日(?!咳)|指(?!肠|甲)|小时|分钟|毫[克升米]|公斤|厘米|星期|单位))"
)
"""A Chinese number that counts something. 十二指肠 (duodenum) and 百日咳 (pertussis) count nothing."""
_HAN_HALF = re.compile(r"(\d+)(个?)(年|天|小时|岁|月|片)半")
_LARGE = {"万": 10_000, "亿": 100_000_000, "thousand": 1000, "million": 1_000_000}
_CLAUSE = re.compile(
    r"[，；。！？]|[,;.!?](?=\s|$)|[,;!?](?=[\u3400-\u9fff])|(?<=[\u3400-\u9fff])[,;!?]|\b(?:but|and|aber|und|mais|et|pero|y)\b"
)


def sentence_marks(source: str, target: str, back: str, language: Language, to: Language) -> Iterator[str]:
    """Yield what people should look at, such as "number lost: 38.5". `back` is empty if nothing came back."""
    if language.script != to.script and (letters := "".join(filter(language.writes, target))):
        yield f"{NOT_TRANSLATED}: {letters[:20]}"
    if not back:
        yield NO_BACK
        return
    before, after = numbers(source, language), numbers(back, language)
    if lost := before - after:
        yield f"{NUMBER_LOST}: {', '.join(f'{value:f}' for value in lost)}"
    if added := after - before:
        yield f"{NUMBER_ADDED}: {', '.join(f'{value:f}' for value in added)}"
    yield from _negation_marks(source, back, language)


def numbers(text: str, language: Language) -> Counter[Decimal]:
    """Return the numbers of a text. Digits of names such as IL-6 are none, and 1 may be an article, as in "a week"."""
    text = _in_digits(text, language)
    group, point = (r"[.'’ ]", ",") if language.decimal == "," else (r"[,'’]", r"\.")
    digits = rf"(?:\d{{1,3}}(?:{group}\d{{3}})+(?!\d)|\d+)(?:{point}\d+)?"
    number = re.compile(rf"(?<![\d.])(?<![A-Za-z])(?<![A-Za-z]-){digits}")
    values: Counter[Decimal] = Counter()
    end = 0
    for match in number.finditer(text):
        if match.start() < end:  # the 10^9 of an earlier number
            continue
        plain = re.sub(group, "", match[0]).replace(",", ".")
        value, end = _scaled(Decimal(plain), text, match.end())
        if value != 1:
            values[value.normalize()] += 1
    return values


def _in_digits(text: str, language: Language) -> str:
    """Return a text with digits for the numbers in words that count something."""
    text = text.translate(_WIDE)
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
        return int("".join(str(_HAN_DIGITS[letter]) for letter in sign))
    total = digit = 0
    for letter in sign:
        if letter in _HAN_DIGITS:
            digit = _HAN_DIGITS[letter]
        elif letter == "万":
            total, digit = (total + digit) * _HAN_UNITS[letter], 0
        else:
            total, digit = total + (digit or 1) * _HAN_UNITS[letter], 0
    return total + digit


def _scaled(value: Decimal, text: str, end: int) -> tuple[Decimal, int]:
    """Return a number multiplied by a power of ten or by a word such as 万 after it, and where that ends."""
    if power := _POWER.match(text, end):
        return value.scaleb(int(power[1] or power[2].translate(_SUPERSCRIPTS))), power.end()
    large = re.compile(rf"\s?({'|'.join(_LARGE)})", re.IGNORECASE).match(text, end)
    return (value * _LARGE[large[1].lower()], large.end()) if large else (value, end)


def _negation_marks(source: str, back: str, language: Language) -> Iterator[str]:
    """Yield a mark if a sentence has more separate negations than its translation back has cues, or the reverse.

    Neighbouring negated clauses count once, since "no fever, no cough" may become "no fever or cough". Otherwise yield
    the clauses that are negated only on one side.
    """
    before, after = _clauses(source, language), _clauses(back, language)
    cues, returned = _cues(source, language), _cues(back, language)
    halves = len(language.half_negation.findall(source)) - len(language.half_negation.findall(back))
    if _runs(before) > len(returned) + max(0, -halves):
        yield f"{NEGATION_LOST}: {', '.join(dict.fromkeys(cues))}"
    elif _runs(after) > len(cues) + max(0, halves):
        yield f"{NEGATION_ADDED}: {', '.join(dict.fromkeys(returned))}"
    else:
        for text, negated in before:
            alike = ((chrf(clause, text, order=2), there) for clause, there in after)
            best, there = max(alike, default=(0.0, None), key=lambda pair: pair[0])
            if best >= SAME_CLAUSE and None not in (negated, there) and negated != there:
                yield f"{NEGATION_MOVED}: {text}"


def _cues(text: str, language: Language) -> list[str]:
    return [match[0] for match in language.negation.finditer(language.half_negation.sub(" ", text))]


def _runs(clauses: Iterable[tuple[str, bool | None]]) -> int:
    """Return the number of runs of negated clauses."""
    return sum(bool(negated) for negated, _ in groupby(bool(negated) for _, negated in clauses))


def _clauses(text: str, language: Language) -> list[tuple[str, bool | None]]:
    """Return the clauses of a text without cues; each is negated, not negated, or unclear (None)."""
    clauses: list[tuple[str, bool | None]] = []
    for clause in filter(str.strip, _CLAUSE.split(text)):
        plain = language.half_negation.sub(" ", clause)
        negated = bool(language.negation.search(plain))
        stripped = language.negation.sub("", plain).strip()
        clauses.append((stripped, None if plain != clause and not negated else negated))
    return clauses
