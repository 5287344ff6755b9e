"""Find personal data in a text by rules: dates, high ages, addresses, numbers of records, telephones, mail and links.

Names are in `person_names`. The rules are for English, with some forms of other languages. They miss some personal data
and mark some other text, so a cleaned text is not guaranteed to be free of personal data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from r2med.construction.steps.person_names import name_spans
from r2med.construction.steps.plain_view import PlainView
from r2med.foundation.text.identifiers import PATTERNS

PersonalKind = Literal["NAME", "DATE", "AGE", "ADDRESS", "ID", "PHONE", "MAIL", "URL"]
PERSONAL_KINDS: tuple[PersonalKind, ...] = get_args(PersonalKind)
OLDEST = "over 89"
"""Replacement of an age over 89, since so few people reach it that the number identifies them."""
PLACEHOLDER = re.compile(rf"\[(?P<kind>{'|'.join(PERSONAL_KINDS)})-(?P<number>\d{{1,9}})\]")


@dataclass(frozen=True, order=True)
class PersonalSpan:
    """A part of a text that seems to be personal data, and the rule or the tool that found it."""

    start: int
    end: int
    kind: PersonalKind
    rule: str


def personal_spans(text: str, kinds: Iterable[PersonalKind] = PERSONAL_KINDS) -> list[PersonalSpan]:
    """Return the personal data that rules find in a text, in order. Spans do not overlap."""
    view, wanted = PlainView.of(text), set(kinds)
    found = [
        PersonalSpan(*view.original(start, end), kind, rule)
        for start, end, kind, rule in _found(view.text)
        if kind in wanted
    ]
    return separated(found, text)


def _found(text: str) -> Iterator[tuple[int, int, PersonalKind, str]]:
    for kind, rules in RULES.items():
        for rule, pattern in rules.items():
            for match in pattern.finditer(text):
                start, end = match.span("x" if "x" in pattern.groupindex else 0)
                if CHECKS.get(kind, _any)(text, start, end):
                    yield start, end, kind, rule
    for start, end, rule in name_spans(text):
        yield start, end, "NAME", rule


def separated(spans: Iterable[PersonalSpan], text: str) -> list[PersonalSpan]:
    """Return spans without overlaps. Spans that overlap are joined under the kind of the longest of them.

    Parts of placeholders that the text already contains are left out.
    """
    taken = [match.span() for match in PLACEHOLDER.finditer(text)]
    joined: list[PersonalSpan] = []
    longest = 0
    place = 0
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        while place < len(taken) and taken[place][1] <= span.start:
            place += 1
        if place < len(taken) and taken[place][0] < span.end:
            continue
        if joined and span.start < joined[-1].end:
            last = joined.pop()
            winner = span if span.end - span.start > longest else last
            longest = max(longest, span.end - span.start)
            joined.append(PersonalSpan(last.start, max(last.end, span.end), winner.kind, winner.rule))
        else:
            joined.append(span)
            longest = span.end - span.start
    return joined


def _any(text: str, start: int, end: int) -> bool:
    return True


# The rules. A group named x is the part that is personal; without it, the whole match is.

_MONTH = (
    r"(?:Jan(?:uary|uar|\.)?|Feb(?:ruary|ruar|\.)?|Mar(?:ch|zo|s|\.)?|März|Apr(?:il|\.)?|May|Mai|Mayo|June?|Juni|Jul[iy]?|"
    r"Aug(?:ust|\.)?|Sept?(?:ember|embre|\.)?|O[ck]t(?:ober|obre|ubre|\.)?|Nov(?:ember|embre|iembre|\.)?|"
    r"De[cz](?:ember|\.)?|janvier|février|avril|mai|juin|juillet|août|décembre|"
    r"enero|febrero|abril|mayo|junio|julio|agosto|septiembre|diciembre)"
)
_YEAR = r"(?:(?:19|20)\d\d|['’]\d\d)"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_CITY = r"[A-ZÀ-ÖØ-Þ][\w'’-]{1,30}"
_STREETS = (
    r"Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr(?!\.?\s[A-Z])|Court|Ct|Place|Pl|Square|Sq|Terrace|Way|"
    r"Close|Crescent|Highway|Hwy|Parkway|Pkwy|Mews|Grove|Gardens"
)
_LOUD_STREETS = "STREET|AVENUE|AVE|ROAD|BOULEVARD|BLVD|LANE|DRIVE|COURT|PLACE|SQUARE|TERRACE|HIGHWAY|PARKWAY"
_STATES = (
    "AL|AK|AZ|AR|CA|CO|CT|DE|FL|GA|HI|ID|IL|IN|IA|KS|KY|LA|ME|MD|MA|MI|MN|MS|MO|MT|NE|NV|NH|NJ|NM|NY|NC|ND|OH|OK|OR|PA|RI|"
    "SC|SD|TN|TX|UT|VT|VA|WA|WV|WI|WY|DC"
)
_POSTCODE = r"[A-Z]{1,2}\d[A-Z\d]? ?\d[ABD-HJLNP-UW-Z]{2}"
_TOWN = (
    rf"(?:,\s(?:\d{{4,5}}\s)?{_CITY}(?:\s{_CITY}){{0,2}})?"
    rf"(?:,?\s(?:(?:{_STATES})\b(?:\s\d{{5}}(?:-\d{{4}})?)?|{_POSTCODE}\b))?"
)
"""The end of an address: town, state, code. It may be missing."""
_HIGH_AGE = r"(?P<x>9\d|1[0-2]\d)"
_TENS = r"one|two|three|four|five|six|seven|eight|nine"
_NUMBER = r"[A-Z]{0,4}-?\d(?:[\dA-Z]|[-/](?=[\dA-Z])|\s(?=\d{3})){2,20}(?![\dA-Z])"
_NUMBERED = (
    r"account|acct|accession|admission|case|chart|claim|device|driver['’]?s?|encounter|episode|file|health|hospital|"
    r"identification|identity|insurance|lab|licen[cs]e|medicaid|medical|medicare|member|passport|patient|policy|record|"
    r"registration|rec|sample|serial|social\ssecurity|specimen|subject|unit|visit"
)

RULES: Mapping[PersonalKind, Mapping[str, re.Pattern[str]]] = {
    "MAIL": {
        "mail": PATTERNS["e-mail"],
        "mail in words": re.compile(
            r"\b[\w.+-]{1,40}\s?[(\[{]\s?at\s?[)\]}]\s?[\w-]{1,40}(?:(?:\s?[(\[{]\s?dot\s?[)\]}]\s?|\.)[\w-]{1,20}){1,3}"
            r"|\b[\w.+-]{2,40}\sat\s[\w-]{2,40}\sdot\s(?:com|org|net|edu|de|uk|example)\b",
            re.IGNORECASE,
        ),
    },
    "URL": {"link": re.compile(r"\b(?:https?://|www\.)[^\s<>\"'’)\]]{2,300}[^\s<>\"'’)\].,;:]", re.IGNORECASE)},
    "DATE": {
        "full date": PATTERNS["date"],
        "date and time": re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?(?:Z|[+-]\d\d:?\d\d)?"),
        "day-month-year": re.compile(rf"\b{_DAY}-(?:0?[1-9]|1[0-2])-(?:(?:19|20)\d\d|\d\d)\b(?!-)"),
        "day, month in words, year": re.compile(
            rf"\b{_DAY}(?:st|nd|rd|th|\.)?(?:\s(?:of|de))?[\s-]?{_MONTH}(?:\sde)?[,\s-]{{0,2}}{_YEAR}\b", re.IGNORECASE
        ),
        "day-month in words-year": re.compile(rf"\b{_DAY}[-/]{_MONTH}[-/]\d\d\b", re.IGNORECASE),
        "month in words, day, year": re.compile(rf"\b{_MONTH}\s{_DAY}(?:st|nd|rd|th)?,?\s{_YEAR}\b", re.IGNORECASE),
        "day and month": re.compile(
            rf"\b{_DAY}(?:st|nd|rd|th|\.)?(?:\s(?:of|de))?\s{_MONTH.upper()}\b(?!-)"
            rf"|\b{_DAY}(?:st|nd|rd|th|\.)?(?:\s(?:of|de))?\s{_MONTH}\b(?!-)"
        ),
        "month and day": re.compile(
            rf"\b(?!mai\b|mayo\b){_MONTH}\s{_DAY}(?:st|nd|rd|th)?\b(?![\d%.,]\d|%|-|\s?(?:mg|g|ml|µg|mcg|mm|cm|kg|patients|cases)\b)"
        ),
        "month and year": re.compile(rf"\b(?:{_MONTH}|{_MONTH.upper()})[,\s]{{1,2}}(?:of\s)?(?:19|20)\d\d\b"),
        "day and month in numbers": re.compile(
            r"\b(?:[Oo]n|ON|[Dd]ated)\s(?P<x>\d{1,2}/\d{1,2})(?![\d/]|\s?(?:mg|days))"
        ),
        "date after a cue": re.compile(
            rf"\b(?:DOB|[Dd]ate\sof\s[Bb]irth|[Bb]orn(?:\son)?|[Dd]ate|DATE)[:\s]{{1,3}}"
            rf"(?P<x>(?:19|20)\d\d[01]\d[0-3]\d|\d{{1,2}}[-./ ]\d{{1,2}}[-./ ]\d{{2,4}}|{_MONTH}\s(?:19|20)\d\d)\b"
        ),
        "year of birth": re.compile(
            r"\b(?:[Bb]orn\sin|[Yy]ear\sof\s[Bb]irth:?|[Bb]irth\s[Yy]ear:?|geboren|née?\sen|nacid[oa]\sen)\s(?P<x>(?:19|20)\d\d)\b"
        ),
        "holiday and year": re.compile(
            r"\b(?:Christmas|New\sYear'?s?|Thanksgiving|Easter|Halloween|Ramadan|Diwali)(?:\s(?:Eve|Day|Sunday|Monday))?,?\s"
            r"(?:of\s)?(?:19|20)\d\d\b"
        ),
        "date in Chinese or Japanese": re.compile(r"(?:19|20)\d\d年\d{1,2}月(?:\d{1,2}日)?"),
    },
    "AGE": {
        "age": re.compile(
            rf"\b{_HIGH_AGE}(?=[\s-]{{0,2}}(?:years?|yrs?|y)\.?[\s-]{{0,2}}(?:old|of\sage)\b|[\s-]?y[-./]?o\b"
            r"|[\s-]?jährig|\s(?:ans|años|anni|Jahre)\b|\s?[岁歲歳]|(?:st|nd|rd|th)\sbirthday)",
            re.IGNORECASE,
        ),
        "age after a cue": re.compile(
            rf"\b(?:aged?|turned)(?:\sof|\s?:|\sis|\swas)?\s?(?:\d{{1,2}}\s?(?:[-–]|to)\s?)?{_HIGH_AGE}\b"
            r"(?!\s?(?:%|mg|months|weeks|days|hours|[.,]\d))",
            re.IGNORECASE,
        ),
        "age and sex": re.compile(rf"\b(?:[Aa]n?|[Ii]s|AN?)\s{_HIGH_AGE}\s?[MF]\b(?!\w)"),
        "age and sex at the start": re.compile(  # elsewhere "99 F" may be a temperature
            rf"(?:^|[.;(\n]\s?|\b[Pp](?:atien)?t:?\s){_HIGH_AGE}\s?[MF](?=\s(?:with|w/|who|[pc]/[wo]|[hs]/[op]|presents|presenting|admitted|found)|,)",
        ),
        "age in words": re.compile(
            rf"\b(?P<x>ninety(?:[-\s](?:{_TENS}))?|(?:one|a)\shundred(?:\sand\s(?:{_TENS}))?)"
            r"(?=[-\s]years?[-\s](?:old|of\sage)\b)",
            re.IGNORECASE,
        ),
    },
    "ADDRESS": {
        "street": re.compile(
            rf"\b\d{{1,5}}[A-Za-z]?(?:\s(?:[NSEW]\.?|{_CITY})){{1,4}}\s(?:{_STREETS}|{_LOUD_STREETS})\b\.?"
            rf"(?:,?\s(?:Apt|Apartment|Suite|Ste|Unit|Flat|APT|#)\.?\s?\w{{1,6}})?{_TOWN}"
        ),
        "street in other languages": re.compile(
            rf"\b\d{{1,4}}(?:\s?(?:bis|ter))?,?\s(?:rue|avenue|boulevard|place|chemin|allée|quai)\s(?:(?:de|du|des|la|le|l['’])\s?){{0,3}}{_CITY}(?:,?\s\d{{5}}\s{_CITY})?"
            rf"|\b(?:[Cc]alle|[Vv]ia|[Rr]ua|[Aa]venida|[Pp]laza|[Pp]iazza)\s(?:de\s|del\s|la\s){{0,2}}{_CITY}(?:\s{_CITY})?,?\s\d{{1,4}}\b(?:,\s\d{{4,5}}\s{_CITY})?"
            rf"|\b[\w-]{{2,30}}(?:stra(?:ß|ss)e|str\.|platz|allee|gasse|weg|damm|-Straße|-Gasse|-Ring|-Allee|-Weg|-Platz)\s\d{{1,4}}(?:[-/]\d{{1,3}})?[a-z]?\b"
            rf"(?:,\s\d{{4,5}}\s{_CITY}(?:\s{_CITY}){{0,2}})?"
        ),
        "number, street, town and code": re.compile(
            rf"(?:\b\d{{1,5}}[A-Za-z]?|\b(?:Flat|Studio|Apt\.?|Unit)\s\w{{1,5}},?)\s[^,\n]{{3,40}}(?:,\s?[^,\n]{{3,30}}){{0,2}}?,\s?"
            rf"(?:(?:{_STATES})\s\d{{5}}(?:-\d{{4}})?|{_POSTCODE})\b"
        ),
        "street and flat": re.compile(
            rf"\b\d{{1,5}}(?:\s{_CITY}){{1,3}},?\s(?:Apt|Apartment|Suite|Ste|Unit|Flat)\.?\s\w{{1,5}}\b"
        ),
        "number and street after a cue": re.compile(
            rf"\b(?:liv(?:es?|ed|ing)|resid(?:es?|ed|ing)|[Aa]ddress|stay(?:s|ed|ing))(?:\s(?:at|is))?[:\s]{{1,2}}"
            rf"(?P<x>\d{{1,5}}[A-Za-z]?(?:\s{_CITY}){{1,4}})"
        ),
        "box": re.compile(r"\b[Pp]\.?\s?[Oo]\.?\s[Bb](?:ox|OX)\s\d{1,6}\b"),
        "town and state": re.compile(
            rf"\b[A-Z][a-z]{{2,20}}(?:\s[A-Z][a-z]{{2,20}}){{0,2}},\s(?:{_STATES})(?=\s\d{{5}}|[.,;)]|\s*$|\s[a-z])(?:\s\d{{5}}(?:-\d{{4}})?)?"
        ),
        "postcode": re.compile(rf"\b{_POSTCODE}\b"),
        "town after a cue": re.compile(
            rf"\b(?:liv(?:es?|ed|ing)\s(?:alone\s|with\s\w{{2,10}}\s\w{{2,12}}\s)?|resid(?:es?|ed|ing)\s|resident\s|moved\s|"
            rf"home\saddress\s?)(?:in|at|near|of|to|from|:)\s(?P<x>{_CITY}(?:[\s-]{_CITY}){{0,2}})"
        ),
    },
    "ID": {
        "record number": PATTERNS["record number"],
        "number after a cue": re.compile(
            rf"\b(?:(?:{_NUMBERED})(?:\s(?:{_NUMBERED}))?[\s-]?(?:numbers?|no\.?|nr\.?|num\.?|id|identifier|code|#)"
            r"|MRN|MR\s?#|SSN|NHS(?:\s(?:number|no\.?))?|NPI|DEA|CHI|PIN|passport|Patienten-?(?:nummer|ID)|Fallnummer|Versichertennummer|ID)"
            rf"(?:\s(?:is|was))?[\s:#.=]{{1,4}}(?P<x>(?-i:{_NUMBER}))",
            re.IGNORECASE,
        ),
        "network address": re.compile(r"\b(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)\b(?!\.\d)"),
        "bank or card number": re.compile(
            r"\b[A-Z]{2}\d{2}(?:\s?[A-Z0-9]{4}){3,7}(?:\s?[A-Z0-9]{1,3})?\b|\b(?:\d{4}[ -]){3}\d{4}\b"
        ),
    },
    "PHONE": {
        "telephone": PATTERNS["telephone"],
        "number with an extension": re.compile(
            r"(?<![\w.-])(?:(?:\+|00)?1[-. ]?)?\(?\d{3}\)?[-. ]?\d{3}[-. ]\d{4}"
            r"(?:\s?(?:x|ext\.?)\s?\d{1,6})?\b(?![-.]\d)"
            r"|\(0\d{2,4}\)\s?\d{5,8}\b"
        ),
        "national number": re.compile(
            r"(?<![\w.,/-])\(?0\d{2,4}\)?[ /-]\d{3,4}[ -]?\d{3,5}(?![\w.]\d)|(?<![\w.,/-])0\d(?:[ .]\d\d){4}\b"
        ),
        "number after a cue": re.compile(
            r"\b(?:call|calls|called|calling|phone|telephone|mobile|cell|fax|pager|ring|reached\s(?:at|on)|text|Tel|Ph|ext)"
            r"(?:\s(?:her|him|them|me|us|at|on|is|no\.?|number|back))*[\s.:]{1,3}(?P<x>\(?\+?\d{2,5}\)?(?:[\s.-]\d{2,5}){1,4}|\d{6,14})(?:x\d{1,6})?\b",
            re.IGNORECASE,
        ),
    },
}
"""Kind of personal data -> name of a rule -> its pattern."""

_OTHER_NUMBERS = re.compile(
    r"(?:\b(?:gene|pubmed|concept|omim|pubchem|compound|snomed|loinc|trial|clinicaltrials|article|catalog(?:ue)?|cas|dataset|"
    r"chembl|ensembl|entrez|pm|pmc|nct)[\s_-]?(?:id|identifier|numbers?|no\.?|registration)?\W{0,3}|NCT)$",
    re.IGNORECASE,
)
"""Words before a number that identifies no person."""
MIN_ID_DIGITS = 4


def _is_record(text: str, start: int, end: int) -> bool:
    value = text[start:end]
    before = text[max(0, start - 40) : start]
    return sum(map(str.isdigit, value)) >= MIN_ID_DIGITS and not _OTHER_NUMBERS.search(before)


_BEFORE_DATE = re.compile(
    r"(?:\b(?:on|am|vom|born|dated?|seen|since|until|from|to|of|dob|admitted|discharged|visit)\s|[:;,(]\s?|^)$",
    re.IGNORECASE,
)


def _is_date(text: str, start: int, end: int) -> bool:
    """Return False for numbers in the form of a date that no calendar has, such as 120.80.20."""
    parts = [int(part) for part in re.findall(r"\d+", text[start:end])]
    if re.fullmatch(r"\d{1,2}\.\d{1,2}\.\d\d", text[start:end]) and not _BEFORE_DATE.search(
        text[max(0, start - 20) : start]
    ):
        return False  # the version of a program, or the number of a section
    if len(parts) == 2 and "/" in text[start:end]:
        return all(1 <= part <= 31 for part in parts) and min(parts) <= 12
    if len(parts) == 3 and parts[0] <= 31 and not re.search(r"[^\W\d]", text[start:end]):
        return 1 <= min(parts[:2]) <= 12 and max(parts[:2]) <= 31
    return True


_NO_TOWN = frozenset(
    "Africa America Asia Europe Australia Stage Grade Type Class Group Table Figure North "
    "South East West Central The A An".split()
)


def _is_address(text: str, start: int, end: int) -> bool:
    return text[start:end].split()[0] not in _NO_TOWN


CHECKS: Mapping[PersonalKind, Callable[[str, int, int], bool]] = {
    "ID": _is_record,
    "DATE": _is_date,
    "ADDRESS": _is_address,
}
"""Kind -> check of what its rules found."""
