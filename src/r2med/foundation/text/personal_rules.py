"""Rules for personal data in clinical text: dates, ages over 89, mail, telephone numbers, and numbers after their word.

They read English, German, Spanish, French and Chinese. Names are left to a library or an LLM: rules cannot tell them
from other words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

RuleKind = Literal["DATE", "AGE", "ID", "PHONE", "MAIL"]
LANGUAGES = ("English", "German", "Spanish", "French", "Chinese")
"""Languages of the rules."""
MIN_ID_DIGITS, MIN_PHONE_DIGITS = 4, 7
"""Minimum number of digits after the word of an id or a telephone. "Case no. 3" identifies nobody."""

_MONTHS = (
    r"(?i:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?)\.?|May|MAY|Januar|Jänner|Februar|März|Mai|Juni|Juli|Oktober|Dezember"
    r"|[Ee]nero|[Ff]ebrero|[Mm]arzo|[Aa]bril|[Mm]ayo|[Jj]unio|[Jj]ulio|[Aa]gosto|[Ss]eptiembre|[Oo]ctubre|[Nn]oviembre"
    r"|[Dd]iciembre|[Jj]anvier|[Ff]évrier|[Mm]ars|[Aa]vril|[Mm]ai|[Jj]uin|[Jj]uillet|[Aa]oût|[Ss]eptembre|[Oo]ctobre"
    r"|[Nn]ovembre|[Dd]écembre"
)
_WEEKDAYS = (
    r"(?:(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|(?:Mon|Diens|Donners|Frei|Sams|Sonn)tag|Mittwoch|lunes|martes"
    r"|miércoles|jueves|viernes|sábado|domingo|(?:lun|mar|mercre|jeu|vendre|same)di|dimanche),?\s(?:den\s)?"
)
_NUMBER = r"(?:(?i:numbers?|no\.?|nr\.?|id|identifier|n\.?º|núm(?:ero)?\.?|n°|numéro)|#|-(?:Nr\.?|Nummer|ID))"
_NUMBERED = (
    r"(?i:account|accession|admission|case|chart|claim|driver'?s? licen[cs]e|encounter|episode|health|hospital|identity"
    r"|insurance|medicaid|medical|medicare|member|passport|patient|policy|record|serial|social security|specimen"
    r"|subject|visit|nhs|fall|patienten|akten|versicherten|histologie|befund|ausweis|episodio|historia|paciente"
    r"|expediente|tarjeta|caso|seguridad social|muestra|dossier|patiente|séjour|prélèvement|sécurité sociale|examen)"
)
"""Words that need a word for "number" before an id follows, such as "case number"."""
_IDS = (
    r"MRN|SSN|NHS|NPI|KVNR|NHC|DNI|NIE|NIF|CURP|NUSS|NASS|IPP|NIR|NDA|INS|Pat\.-?(?:Nr\.?|ID)|Steuer-?ID"
    r"|(?:Fall|Aufnahme|Patienten|(?:Kranken)?[Vv]ersicherten|Auftrags|Histologie|Akten)(?:nummer|-?Nr\.?|-?ID)"
    r"|(?i:passport|social security|n\.?º ?col|cédula|episodio|expediente|pasaporte|tarjeta sanitaria"
    r"|historia clínica|carte vitale|passeport)"
    r"|(?:住院|病案|病历|门诊|病理|检查|登记|医保卡?|社保卡?|就诊卡?|身份证|护照|标本|条码|档案|影像|检验)(?:号码|编号|号|ID)"
    r"|身份证|(?:患者|病人)ID号?|ID号"
)
_PHONES = (
    r"(?i:tele(?:phone|fax)|phone|mobile|cell|fax|pager|tel(?:efon|efax|éfonos?|[fe])?|call|téléphone|tél|portable"
    r"|télécopie|joignable|rappeler|secrétariat|móvil|celular|llamar)"
    r"|Telefonnummer|Faxnummer|Mobil|Handy|Rückruf|Rückfragen|telefonisch|(?:电话|手机|联系方式|传真|座机)(?:号码|号)?"
)
_AGES = (
    r"AGE[\s-]{0,2}(?i:years?|yrs?)[\s-](?i:old|of age)",
    r"AGE[\s-]?(?i:y/?o|y\.o\.?)\b",
    r"\b(?i:aged?|at the age of|age of)(?: ?:| is| was)? AGE(?=$|[.,;)]|\s(?i:years|and|was|when))",
    r"AGE[\s-]?jährig\w{0,2}",
    r"AGE Jahren? alt",
    r"\b(?:Alter|im Alter von):? AGE(?=[\s.,]|$)",
    r"\b(?:ver)?st[ao]rb(?:en)? mit AGE(?= Jahren)",
    r"AGE años de edad",
    r"\b(?i:varón|hombre|mujer|paciente|señora?|ancian[oa]|edad)(?: de| con)?:? AGE(?= años)",
    r"\b(?i:falleci\w+|muri\w+) a los AGE(?= años)",
    r"\b(?i:âgée?s? de|l'âge de|homme de|femme de|patiente? de|monsieur de|dame de) AGE(?= ans)",
    r"\b(?i:décédée?|mort[es]?) à AGE(?= ans)",
    r"AGE\s?[岁歲]",
    r"(?P<x>九十[一二三四五六七八九]?|一百(?:零[一二三四五六七八九])?)岁",
)
_AGE = r"(?<![\d.-])(?<!\d,)(?P<x>9\d|1[01]\d)(?!\d)"
_DAY, _MONTH, _YEAR = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:0?[1-9]|1[0-2])", r"(?:19|20)\d\d"
_HAN = "[〇零○一二三四五六七八九十]"
_HAN_PART = rf"(?:\d{{1,2}}|{_HAN}{{1,3}})"


@dataclass(frozen=True)
class Rule:
    """A form of personal data. A group named x is the part that is personal; without it, the whole match is."""

    kind: RuleKind
    name: str
    pattern: re.Pattern[str]
    check: Callable[[str], bool] = bool
    """Returns True if the match is really personal data."""

    def found(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield start and end of what the rule finds in a text."""
        group = "x" if "x" in self.pattern.groupindex else 0
        return (match.span(group) for match in self.pattern.finditer(text) if self.check(match[group]))


@cache
def rules() -> Sequence[Rule]:
    """Return all rules."""
    mail = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}", re.ASCII)
    ages = (Rule("AGE", "age", re.compile(form.replace("AGE", _AGE))) for form in _AGES)
    return (Rule("MAIL", "mail", mail), *_date_rules(), *_phone_rules(), _id_rule(), *ages)


def _date_rules() -> Iterator[Rule]:
    """Yield the rules for dates. A year alone identifies nobody and stays."""
    months, of = rf"(?<![^\W\d])(?:{_MONTHS})(?!\w)", r"(?:of\s|del?\s)?"
    day = rf"(?<![\d.,/]){_DAY}(?:st|nd|rd|th|er|º|\.)?"
    days = rf"{day}(?:\s?(?:-|to|and|bis|au|al)\s{day})?"
    start = r"(?<![A-Za-z\d./])(?<!\d-)"
    forms = {
        f"numbers with {sign}": rf"(?<![A-Za-z\d{sign}])(?<!\d[.,])(?:{_YEAR}[{sign}]{_MONTH}[{sign}]{_DAY}"
        rf"|{_DAY}[{sign}]{_MONTH}[{sign}]{_YEAR}|{_MONTH}[{sign}]{_DAY}[{sign}]{_YEAR})(?!\d|[{sign}]\d)"
        for sign in ("-", "/", ".")
    } | {
        "day, month in words": rf"{days}[\s-]?{of}{months},?[\s-]{of}{_YEAR}\b",
        "month in words, day": rf"{months}\s{_DAY}(?:st|nd|rd|th)?,?\s{_YEAR}\b",
        "Chinese": rf"(?:\d{{4}}|{_HAN}{{4}})年{_HAN_PART}月(?:{_HAN_PART}[日号])?",
        "day and month": rf"{days}\s{of}{months}(?!\s?\d)",
        "month and day": rf"{months}\s{_DAY}(?:st|nd|rd|th)?(?![\w%]|[.,]\d|[-/]\d|\s?(?:%|mg|of|patients|cases)\b)",
        "month and year": rf"{months},?\s{of}{_YEAR}\b",
        "month and year in numbers": rf"{start}(?:0[1-9]|1[0-2])/{_YEAR}(?!\w|/)",
        "Chinese day and month": rf"{_HAN_PART}月{_HAN_PART}[日号]",
    }
    for name, form in forms.items():
        yield Rule("DATE", name, re.compile(rf"(?:\b{_WEEKDAYS})?{form}"))
    german = rf"\b(?:am|vom|bis|zum|ab)\s(?P<x>{_DAY}\.{_MONTH}\.)(?!\d)"
    yield Rule("DATE", "German day and month", re.compile(german))
    after = rf"{_DAY}/(?:0[1-9]|1[0-2])|{_MONTH}/(?:1[3-9]|2\d|3[01])"
    on = rf"\b(?:[Oo]n|[Ll]e|[Ee]l)\s(?P<x>{after})(?![\w/.]\w|\s?(?:of|mg)\b)"
    yield Rule("DATE", "day and month after a word", re.compile(on))
    short = rf"{start}(?:{_DAY}(?P<a>[/.]){_MONTH}(?P=a)\d\d|{_MONTH}/{_DAY}/\d\d)(?!\d|[./-]\d|\s?[%°a-zµ])"
    yield Rule("DATE", "numbers, short year", re.compile(short), _is_dated)


def _is_dated(text: str) -> bool:
    """Return True if three short numbers are a date, as 27.12.19, and not an Apgar score, as 8/9/10."""
    return any(part[0] == "0" or int(part) > 12 for part in re.split(r"\D", text)[:2])


def _phone_rules() -> Iterator[Rule]:
    forms = (
        r"(?<![\w.])\+\d{1,3}[ ./-]?\(?\d{1,4}\)?(?:[ ./-]?\d{2,4}){2,4}\b",
        r"(?<![\w.-])\(?[1-9]\d{2}\)?[ .-]\d{3}[.-]\d{4}\b(?![-.]\d)",  # 617 555-0132
        r"(?<![\w.,/-])\(?0[1-9]\d{1,3}\)?[ /-]\d{3,4}[ -]?\d{3,5}(?![\w.]\d)",  # 030 450 555012
        r"(?<![\w.,/-])0\d(?:[ .]\d\d){4}\b",  # 01 45 55 01 42
        r"(?<![\w.-])1[3-9]\d(?:[ -]?\d{4}){2}(?!\d)",  # 138 0013 8000
    )
    for form in forms:
        yield Rule("PHONE", "form", re.compile(form, re.ASCII))
    number = r"\(?\+?\d(?:[\d ()/.-]{4,16})\d(?![\d%])"
    after = re.compile(rf"(?<![A-Za-z])(?:{_PHONES})(?!\w)[^\d\n+(.;]{{0,20}}\.?:?\s?(?P<x>{number})")
    yield Rule("PHONE", "word", after, lambda text: sum(map(str.isdigit, text)) >= MIN_PHONE_DIGITS)


_NO_PERSON = re.compile(r"NCT|ISRCTN|CRD|PMC|ACTRN|EUCTR|ChiCTR|DRKS")
"""Registers of trials and articles, whose numbers identify nobody."""


def _id_rule() -> Rule:
    number = r"(?:[A-Z]{1,4}[ /-]?)?\d(?:[A-Z\d]|[-/.](?=[A-Z\d])|\s(?=\d\d)){2,24}(?![\dA-Z])"
    word = (
        rf"(?<![A-Za-z])(?:(?:{_NUMBERED})(?:\s(?:{_NUMBERED}))?[\s-]?{_NUMBER}"
        rf"|{_NUMBER}\s(?:de\s|d'|of\s)?(?:la\s)?(?:{_NUMBERED}|{_IDS})|(?:{_IDS})(?:\s?{_NUMBER})?)"
    )
    after = r"(?:\s(?:is|was|ist|est|es)|为|是)?[\s:：#.=]{0,4}"
    return Rule("ID", "word", re.compile(rf"{word}{after}(?P<x>{number})"), _is_id)


def _is_id(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= MIN_ID_DIGITS and not _NO_PERSON.match(text)
