"""Find personal data in clinical text by rules: dates, ages over 89, ids, telephone numbers, e-mail addresses.

The rules are for English, German, Spanish, French and Chinese. A text without a finding may still hold personal data.
Names are only found after a title, and only for warnings: rules cannot tell names from other words.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

from r2med.foundation.text import check_digits

IdentifierKind = Literal["e-mail", "date", "age", "telephone", "record number", "name"]
LANGUAGES = ("English", "German", "Spanish", "French", "Chinese")
"""Languages of the rules."""
MIN_ID_DIGITS = 4
"""Minimum number of digits of an id after its word. "Case no. 3" identifies nobody."""
MIN_PHONE_DIGITS = 7
MAX_WORDS_BEFORE = 24
"""Characters before a match in which words that belong to it are looked for."""


@dataclass(frozen=True)
class Identifier:
    """A string in a text that looks like personal data."""

    kind: IdentifierKind
    text: str
    start: int


@dataclass(frozen=True)
class Rule:
    """A form of personal data. A group named x is the part that is personal; without it, the whole match is."""

    kind: IdentifierKind
    name: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = bool
    """Returns True if the match is really personal data."""
    before: re.Pattern[str] | None = None
    """Words directly before the match that belong to it, such as a day of the week."""
    warns: bool = True
    """False for forms that are common in published texts, such as May 2015."""

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of what the rule finds in a text."""
        group = "x" if "x" in self.pattern.groupindex else 0
        for match in self.pattern.finditer(text):
            if self.check(match[group]):
                start, end = match.span(group)
                first = max(0, start - MAX_WORDS_BEFORE)
                earlier = self.before and self.before.search(text, first, start)
                yield earlier.start() if earlier else start, end


def identifiers(text: str) -> Iterator[Identifier]:
    """Yield the strings of a text that look like personal data, by kind."""
    for rule in rules():
        if rule.warns:
            for start, end in rule.found(text):
                yield Identifier(rule.kind, text[start:end], start)


def identifier_warning(what: str, texts: Iterable[str]) -> str:
    """Return a one-line warning if texts that are about to be sent seem to hold personal data; otherwise empty.

    `what` names sender and receiver, as in "judge sends to gpt4". The personal data itself is not repeated, because the
    line goes into logs.
    """
    counts = Counter[str]()
    holding = 0
    total = 0
    for text in texts:
        kinds = [identifier.kind for identifier in identifiers(text)]
        counts.update(kinds)
        holding += bool(kinds)
        total += 1
    if not holding:
        return ""
    listed = ", ".join(
        f"{counts[kind]} × {kind}" for kind in dict.fromkeys(rule.kind for rule in rules()) if counts[kind]
    )
    return f"{what} on another machine: {holding} of {total} texts seem to contain personal data ({listed})"


@cache
def rules() -> Sequence[Rule]:
    """Return all rules. Their words are in personal_words.toml."""
    table = tomllib.loads((files(__package__) / "personal_words.toml").read_text("utf-8"))
    words = {key: "|".join(word for row in table.values() for word in row[key]) for key in table["English"]}
    ages = [form for row in table.values() for form in row["ages"]]
    return (
        Rule("e-mail", "mail", re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}", re.ASCII)),
        *_date_rules(words["months"], words["weekdays"]),
        *_phone_rules(words["phones"]),
        *_id_rules(words["ids"], words["numbered"], words["number"]),
        Rule("name", "title", _TITLED_NAME),
        *(Rule("age", "age", re.compile(form.replace("AGE", _AGE)), warns=False) for form in ages),
    )


# Dates. A year alone identifies nobody and stays.

_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)\d\d"
_HAN = "[〇零○一二三四五六七八九十]"
_HAN_PART = rf"(?:\d{{1,2}}|{_HAN}{{1,3}})"


def _date_rules(months: str, weekdays: str) -> Iterator[Rule]:
    months = rf"(?<![^\W\d])(?:{months})(?!\w)"
    weekday = re.compile(rf"\b(?:{weekdays}),?\s(?:den\s)?$")
    day, of = rf"(?<![\d.,/]){_DAY}(?:st|nd|rd|th|er|º|\.)?", r"(?:of\s|del?\s)?"
    days = rf"{day}(?:\s?(?:-|to|and|bis|au|al)\s{day})?"
    start = r"(?<![A-Za-z\d./])(?<!\d-)"
    full = {
        f"numbers with {sign}": rf"(?<![A-Za-z\d{sign}])(?<!\d[.,])(?:{_YEAR}[{sign}]{_MONTH}[{sign}]{_DAY}"
        rf"|{_DAY}[{sign}]{_MONTH}[{sign}]{_YEAR}|{_MONTH}[{sign}]{_DAY}[{sign}]{_YEAR})(?!\d|[{sign}]\d)"
        for sign in ("-", "/", ".")
    } | {
        "day, month in words": rf"{days}[\s-]?{of}{months},?[\s-]{of}{_YEAR}\b",
        "month in words, day": rf"{months}\s{_DAY}(?:st|nd|rd|th)?,?\s{_YEAR}\b",
        "Chinese": rf"(?:\d{{4}}|{_HAN}{{4}})年{_HAN_PART}月(?:{_HAN_PART}[日号])?",
    }
    parts = {
        "day and month": rf"{days}\s{of}{months}(?!\s?\d)",
        "month and day": rf"{months}\s{_DAY}(?:st|nd|rd|th)?(?![\w%]|[.,]\d|[-/]\d|\s?(?:%|mg|of|patients|cases)\b)",
        "month and year": rf"{months},?\s{of}{_YEAR}\b",
        "month and year in numbers": rf"{start}(?:0[1-9]|1[0-2])/{_YEAR}(?!\w|/)",
        "German day and month": rf"\b(?:am|vom|bis|zum|ab)\s(?P<x>{_DAY}\.{_MONTH}\.)(?!\d)",
        "day and month after a word": rf"\b(?:[Oo]n|[Ll]e|[Ee]l)\s(?P<x>{_DAY}/(?:0[1-9]|1[0-2])"
        rf"|{_MONTH}/(?:1[3-9]|2\d|3[01]))(?![\w/.]\w|\s?(?:of|mg)\b)",
        "Chinese day and month": rf"{_HAN_PART}月{_HAN_PART}[日号]",
    }
    for name, form in full.items():
        yield Rule("date", name, re.compile(form), before=weekday)
    short = rf"{start}(?:{_DAY}(?P<a>[/.]){_MONTH}(?P=a)\d\d|{_MONTH}/{_DAY}/\d\d)(?!\d|[./-]\d|\s?[%°a-zµ])"
    yield Rule("date", "numbers, short year", re.compile(short), _is_dated)
    for name, form in parts.items():
        yield Rule("date", name, re.compile(form), before=weekday, warns=False)


def _is_dated(text: str) -> bool:
    """Return True if three short numbers are a date, as 27.12.19, and not an Apgar score, as 8/9/10."""
    parts = re.split(r"\D", text)[:2]
    return any(part[0] == "0" or int(part) > 12 for part in parts)


# Ages. So few people are older than 89 that the number identifies them.

_AGE = r"(?<![\d.-])(?<!\d,)(?P<x>9\d|1[01]\d)(?!\d)"


# Telephone numbers and ids.


def _phone_rules(words: str) -> Iterator[Rule]:
    forms = (
        r"(?<![\w.])\+\d{1,3}[ ./-]?\(?\d{1,4}\)?(?:[ ./-]?\d{2,4}){2,4}\b",
        r"(?<![\w.-])\(?[1-9]\d{2}\)?[ .-]\d{3}[.-]\d{4}\b(?![-.]\d)",  # 617 555-0132
        r"(?<![\w.,/-])\(?0[1-9]\d{1,3}\)?[ /-]\d{3,4}[ -]?\d{3,5}(?![\w.]\d)",  # 030 450 555012
        r"(?<![\w.,/-])0\d(?:[ .]\d\d){4}\b",  # 01 45 55 01 42
        r"(?<![\w.-])1[3-9]\d(?:[ -]?\d{4}){2}(?!\d)",  # 138 0013 8000
    )
    for form in forms:
        yield Rule("telephone", "form", re.compile(form, re.ASCII))
    number = r"\(?\+?\d(?:[\d ()/.-]{4,16})\d(?![\d%])"
    yield Rule(
        "telephone",
        "word",
        re.compile(rf"(?<![A-Za-z])(?:{words})(?!\w)[^\d\n+(.;]{{0,20}}\.?:?\s?(?P<x>{number})"),
        _is_phone,
    )


def _is_phone(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= MIN_PHONE_DIGITS


_ID = r"(?:[A-Z]{1,4}[ /-]?)?\d(?:[A-Z\d]|[-/.](?=[A-Z\d])|\s(?=\d\d)){2,24}(?![\dA-Z])"
_NO_PERSON = re.compile(r"NCT|ISRCTN|CRD|PMC|ACTRN|EUCTR|ChiCTR|DRKS")
"""Registers of trials and articles, whose numbers identify nobody."""


def _id_rules(ids: str, numbered: str, number: str) -> Iterator[Rule]:
    word = (
        rf"(?<![A-Za-z])(?:(?:{numbered})(?:\s(?:{numbered}))?[\s-]?(?:{number})"
        rf"|(?:{number})\s(?:de\s|d'|of\s)?(?:la\s)?(?:{numbered}|{ids})|(?:{ids})(?:\s?(?:{number}))?)"
    )
    after = r"(?:\s(?:is|was|ist|est|es)|为|是)?[\s:：#.=]{0,4}"
    yield Rule("record number", "word", re.compile(rf"{word}{after}(?P<x>{_ID})"), _is_id)
    yield Rule(
        "record number",
        "US social security",
        re.compile(r"(?<![\w-])(?!000|666|9)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\w-])"),
    )
    checked = {
        "NHS": (r"\d{3}[ -]\d{3}[ -]\d{4}", check_digits.is_nhs_number),
        "Chinese identity card": (
            rf"[1-9]\d{{5}}{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\d{{3}}[\dXx]",
            check_digits.is_chinese_id,
        ),
        "NIR": (
            r"[12]\s?\d\d\s?(?:0[1-9]|1[0-2]|[2-9]\d)\s?(?:\d\d|2[AB])\s?\d{3}\s?\d{3}\s?\d\d",
            check_digits.is_nir,
        ),
        "DNI": (r"(?:\d{8}|\d{1,2}\.\d{3}\.\d{3}|[XYZ]-?\d{7})-?[A-Z]", check_digits.is_dni),
        "KVNR": (r"[A-Z](?!0000)\d{9}", check_digits.is_kvnr),
        "card": (r"\d{4}(?:[ -]?\d{4}){3}", check_digits.is_card_number),
        "IBAN": (r"[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?", check_digits.is_iban),
    }
    for name, (form, check) in checked.items():
        yield Rule(
            "record number", f"{name} with check digit", re.compile(rf"(?<![A-Za-z\d.-]){form}(?![A-Za-z\d])"), check
        )


def _is_id(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= MIN_ID_DIGITS and not _NO_PERSON.match(text)


_TITLED_NAME = re.compile(
    r"\b(?:Mr|Mrs|Ms|Miss|Mister|Dr|Prof|Herr|Frau|Mme)\b\.?\s(?:[A-Z]\.\s?)?[A-Z][a-z]+(?:[ -][A-Z][a-z]+)?"
    r"|\b(?:(?i:patient|name)(?:'s name)?: ?|(?:named|called|is) (?=[A-Z][a-z]+ [A-Z][a-z]+ ))"
    r"[A-Z][a-z]+ (?:[A-Z]\. )?[A-Z][a-z]+"
)
