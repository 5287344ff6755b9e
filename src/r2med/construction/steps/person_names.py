"""Find names of people: after titles and cues, before credentials and ages, by common given names, and as initials.

Medical eponyms such as Crohn or Parkinson are not names of people here, unless a title or a given name comes before
them. The words are in the folder `word_lists`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple

MAX_NAME_WORDS = 5
"""Maximum number of words in a name, with initials and particles."""

TITLES = frozenset(
    "mr mrs ms miss mister mx dr drs prof professor doctor herr frau mme mlle monsieur madame señor señora "
    "señorita sr sra sir dame nurse sister rev reverend fr father capt sgt lt".split()
)
LOWERCASE_TITLES = frozenset("mr mrs dr prof herr frau mme mlle".split())
"""Titles that are no other word, so that they count in lower case too."""
CREDENTIALS = frozenset("MD DO RN PhD FRCP FRCS MRCP MBBS MBChB NP BSN MPH DPhil DDS PharmD FACP FACS DNP LCSW".split())
PARTICLES = frozenset("van von de der den la le di da dos del della du bin ibn al el ter ten abu".split())

_WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|['-](?=[^\W\d_]))*")
_GAP = re.compile(r"[ \t]{1,3}|[ \t]{0,3}\r?\n[ \t]{0,3}")
_DOTTED_GAP = re.compile(r"\.(?:[ \t]{0,3}|[ \t]{0,3}\r?\n[ \t]{0,3})")
_AGED = re.compile(
    r"(?:'s)?,?\s{1,2}(?:who\s|(?:is|was)\s){0,2}(?:(?:an?\s)?(?:\d{1,3}|over 89)[\s-]{0,2}(?:years?|yrs?|"
    r"y/?o\b|y\.o)|aged?\s\d|\(\s?\d{1,3}\s?(?:y|M|F|,|\)))"
    r"|,\s\d{1,3}\s?(?:,|[MF]\b|-?y)"
)
_DID = re.compile(
    r"\.?,?\s(?:is|was|were|has|had|presented|reported|reports|came|attended|developed|denied|denies|underwent|received|returned|"
    r"complained|complains|felt|died|who|,)\b"
)

STRONG_CUE = re.compile(
    r"(?:\b(?:name|patient|pt|patient's\sname|signed|signature|dictated\sby|attending|physician|surgeon|provider|referring|gp|nok|"
    r"next\sof\skin|mother|father|guardian|contact|nombre|nom|nome|paciente|пациент|пациентка|имя|фио|врач|ασθενής|όνομα)\s?[:：=]|\b(?:named|"
    r"dear|sincerely,|regards,|my\sname\sis|whose\sname\sis|signed\sby|electronically\ssigned\sby|known\sas|mr\sand\smrs))\s{1,3}$",
    re.IGNORECASE,
)
"""Words before a name that no other word follows."""
LOOSE_CUE = re.compile(
    r"\b(?:patient|pt|(?i:seen|reviewed|examined|treated|referred|accompanied|operated|assessed|admitted|discharged|dictated|"
    r"transcribed|interpreted|performed|written|brought\sin|followed|evaluated|consented|supervised)\sby|husband|wife|mother|father|son|daughter|brother|"
    r"sister|uncle|aunt|cousin|partner|neighbou?r|friend|colleague|surgeon|physician|cardiologist|neurologist|oncologist|"
    r"consultant|therapist|attending|pathologist|radiologist|spoke\s(?:to|with)|discussed\swith|contacted|called|informed|cc)[,:]?\s{1,3}$",
)
"""Words before a name that other words may follow, so that two words of a name are needed."""
CUE_CHARACTERS = 40
"""Characters before a word in which a cue is looked for."""

_OTHER_SCRIPTS = re.compile(
    r"(?:患者|病人|姓名|氏名|患者名|名前)\s?[:：]\s?(?P<a>[\u4e00-\u9fff\u3040-\u30ff]{2,6}"
    r"(?:[ \u3000][\u4e00-\u9fff\u3040-\u30ff]{1,6})?)"
    r"|(?:患者|病人)(?P<b>[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗][\u4e00-\u9fff]{1,2}?)(?=[，,。、\s（(男女因]|先生|女士)"
    r"|(?:المريض|المريضة|الاسم|اسم المريض)\s?:\s?(?P<c>[\u0600-\u06ff]{2,15}(?:\s[\u0600-\u06ff]{2,15}){0,2})"
    r"|(?:שם|שם המטופל|नाम|रोगी)\s?:\s?(?P<d>[\u0590-\u05ff\u0900-\u097f]{2,15}"
    r"(?:\s[\u0590-\u05ff\u0900-\u097f]{2,15}){0,2})"
)
"""Names after a cue in scripts without capitals."""
_INITIALS = re.compile(
    r"(?<![\w.&])(?:[A-Z]\.\s?){1,2}[A-Z]\.?(?![\w&])|(?<=\bpatient )[A-Z]{2,3}(?=,| (?:was|is|had|has|presented)\b)"
)
_NO_INITIALS = frozenset(
    "US UK EU AM PM MD DO IV IM SC PO BD TD OD QD BID TID QID DC LP CT ECG EEG RA BP HR RR AD BC EG IE USA "
    "NOS NB AND OR NO".split()
)
_PERSON_VERB = re.compile(
    r"\s(?:reported|reports|said|says|stated|states|complained|complains|denied|denies|felt|feels|attended|asked|agreed|"
    r"consented|told|lives|lived|works|worked|smokes|smoked|drinks|died|called|came|was\s(?:born|admitted|discharged|intubated|"
    r"transferred|brought)|has\sa\shistory|(?:is|was)\sallergic)\b"
)
"""What only people do. Two capitalised words before it are a name."""
_SURNAME_FORM = re.compile(
    r"(?:Al-|El-|O'|Mc|Mac)[A-Z]\w{2,}|[A-Z]\w{2,}(?:sson|ovi[cć]|escu|wski|wska|wicz|opoulos|enko|shvili|d[oó]ttir)"
)
"""Forms of words that are surnames in most cases."""
_TERM_OF = re.compile(
    r"\b(?:ampulla|angle|artery|bundle|canal|circle|crypts?|duct|fascia|foramen|gland|islets?|ligament|loop|node|pouch|sign|space|"
    r"sphincter|spot|syndrome|test|tetralogy|triangle|tubercle|valve|vein|zone)\sof\s{1,2}$",
    re.IGNORECASE,
)
"""Words before an eponym, as in pouch of Douglas."""
_FACILITIES = frozenset(
    "hospital hospitals clinic university institute foundation college centre center school trial study medical "
    "memorial infirmary children's criteria street road avenue".split()
)


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of a list in lower case."""
    lines = (files("r2med.construction.steps") / "word_lists" / f"{name}.txt").read_text("utf-8").splitlines()
    return frozenset(word.lower() for line in lines if not line.startswith("#") for word in line.split())


@cache
def _started_by() -> frozenset[str]:
    """Return the words in lower case that a name can start with."""
    return LOWERCASE_TITLES | words("given-names")


@cache
def phrases() -> frozenset[str]:
    """Return terms of several words that look like names, in lower case."""
    lines = (files("r2med.construction.steps") / "word_lists" / "eponym-phrases.txt").read_text("utf-8").splitlines()
    return frozenset(line.lower() for line in lines if not line.startswith("#"))


class _Word(NamedTuple):
    start: int
    end: int
    text: str
    lower: str

    @classmethod
    def of(cls, match: re.Match[str]) -> _Word:
        text = match[0]
        if text[-2:] in ("'s", "'S"):
            text = text[:-2]
        return cls(match.start(), match.start() + len(text), text, text.lower())

    @property
    def is_capitalised(self) -> bool:
        return self.text[0] != self.lower[0] or self.text[0].upper() == self.text[0]

    @property
    def is_initial(self) -> bool:
        return len(self.text) == 1 and self.text.isupper()

    @property
    def is_loud(self) -> bool:
        return len(self.text) > 1 and self.text.isupper()


def name_spans(text: str) -> list[tuple[int, int, str]]:
    """Return start, end and rule of the names in a text. Spans may overlap."""
    finder = _Finder(text)
    found = list(finder.found())
    return [*found, *finder.mentioned_again(found)]


def is_eponym(text: str, start: int, end: int) -> bool:
    """Return True if a name in a text is part of a medical term, such as Crohn's disease or Kernig sign."""
    name = text[start:end].removesuffix("'s").lower()
    if name in phrases() or " ".join(name.replace("-", " ").split()) in phrases():
        return True
    if _TERM_OF.search(text[max(0, start - CUE_CHARACTERS) : start]):
        return True
    parts = re.split(r"[\s-]+", name)
    following = re.match(r"(?:'s|’s|s')?[\s-]{1,2}(?:(?:and|or)\s\S{1,20}\s)?(\w+)", text[end : end + 60])
    if following and following[1].lower() in words("eponym-nouns"):
        return parts[0] not in words("given-names") or parts[-1] in words("eponyms") or len(parts) == 1
    return all(part in words("eponyms") for part in parts) and parts[0] not in words("given-names")


class _Finder:
    """Applies the rules to the words of one text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = [_Word.of(match) for match in _WORD.finditer(text)]

    def found(self) -> Iterator[tuple[int, int, str]]:
        """Yield the names that the rules find."""
        number = 0
        while number < len(self.words):
            word = self.words[number]
            may_start = word.text != word.lower or word.lower in _started_by() or word.is_capitalised
            name = self._at(number) if may_start else None
            if name is None:
                number += 1
            else:
                first, last, rule = name
                yield self.words[first].start, self.words[last].end, rule
                number = last + 1
        yield from self._initials()
        for match in _OTHER_SCRIPTS.finditer(self.text):
            yield *match.span(match.lastgroup or 0), "cue in another script"

    def _at(self, number: int) -> tuple[int, int, str] | None:
        """Return first word, last word and rule of the name that starts at a word; None if no name does."""
        word = self.words[number]
        if self._is_title(word):
            name = self._after_title(number)
            if name is not None:
                return name
        if not word.is_capitalised:
            return self._in_lower_case(number)
        if word.lower in words("not-names"):
            return None
        return self._by_cue(number) or self._by_given_name(number) or self._by_what_follows(number)

    def _in_lower_case(self, number: int) -> tuple[int, int, str] | None:
        """Return a common given name and a common surname, both without a capital."""
        known = self.words[number].text in words("given-names") and self._joined(number)
        return (
            (number, number + 1, "lower case") if known and self.words[number + 1].text in words("surnames") else None
        )

    def _is_title(self, word: _Word) -> bool:
        return word.lower in (TITLES if word.is_capitalised else LOWERCASE_TITLES)

    def _after_title(self, number: int) -> tuple[int, int, str] | None:
        first = number + 1
        while first < len(self.words) and self._joined(first - 1, dotted=True) and self._is_title(self.words[first]):
            first += 1
        if first >= len(self.words) or not self._joined(first - 1, dotted=True):
            return None
        last = self._sequence(first)
        return None if last is None or self._is_place(last) else (first, last, "title")

    def _by_cue(self, number: int) -> tuple[int, int, str] | None:
        start = self.words[number].start
        before = self.text[max(0, start - CUE_CHARACTERS) : start]
        strong = STRONG_CUE.search(before)
        if not strong and not LOOSE_CUE.search(before):
            return None
        last = self._sequence(number)
        if last is None or is_eponym(self.text, start, self.words[last].end) or self._is_place(last):
            return None
        known = self.words[number].lower in words("given-names")
        if strong:
            after = self.words[last].end
            if self.text[after : after + 1] == "," and last == number and last + 1 < len(self.words):
                turned = self._reversed(number)  # name: Smith, John
                return turned or (number, last, "cue")
            return number, last, "cue"
        loud = any(word.is_loud for word in self.words[number : last + 1])
        return (number, last, "cue") if known or (last > number and not loud) else None

    def _reversed(self, number: int) -> tuple[int, int, str] | None:
        """Return a surname, a comma and a given name as one name."""
        after = self.words[number].end
        if number + 1 >= len(self.words) or not re.fullmatch(
            r",\s{0,2}", self.text[after : self.words[number + 1].start]
        ):
            return None
        last = self._sequence(number + 1)
        given = self.words[number + 1].lower
        if last is None or not (given in words("given-names") or given in words("ambiguous-given-names")):
            return None
        return number, min(last, number + 2), "surname, given name"

    def _by_given_name(self, number: int) -> tuple[int, int, str] | None:
        word = self.words[number]
        known = word.lower.partition("-")[0] in words("given-names")
        ambiguous = word.lower in words("ambiguous-given-names")
        if word.lower in words("surnames") and (turned := self._reversed(number)):
            return turned
        if not known and not ambiguous:
            return None
        last = self._sequence(number)
        if last is None or self._is_place(last) or is_eponym(self.text, word.start, self.words[last].end):
            return None
        surname = self.words[last]
        if last > number and (known or surname.lower in words("surnames") or self._has_initial(number, last)):
            return number, last, "given name and surname"
        if known and not word.is_loud and not self._follows_saint(number):
            return number, number, "given name"
        return None

    def _by_what_follows(self, number: int) -> tuple[int, int, str] | None:
        """Return a name before a credential or an age, or after an initial."""
        last = self._sequence(number)
        if last is None:
            return None
        end = self.words[last].end
        after = self.text[end : end + 40]
        credential = re.match(r",?\s{1,2}([A-Z][A-Za-z.]{1,7})\b", after)
        if credential and credential[1].replace(".", "") in CREDENTIALS:
            return number, last, "credential"
        if self.words[last].text in CREDENTIALS and last > number:
            return number, last - 1, "credential"
        if is_eponym(self.text, self.words[number].start, end):
            return None
        if last > number and not self.words[last].is_loud and _AGED.match(after):
            return number, last, "age"
        if last > number and not self.words[last].is_loud and _PERSON_VERB.match(after):
            return number, last, "verb"
        if last > number and _SURNAME_FORM.fullmatch(self.words[last].text):
            return number, last, "form of a surname"
        has_surname = self.words[last].lower in words("surnames")
        if self.words[number].is_initial and last > number and has_surname and self.text[self.words[number].end] == ".":
            return number, last, "initial and surname"
        return None

    def _sequence(self, first: int) -> int | None:
        """Return the last word of a name that starts at a word; None if the word cannot start one."""
        last: int | None = None
        for number in range(first, min(first + MAX_NAME_WORDS, len(self.words))):
            word = self.words[number]
            if number > first and not self._joined(number - 1, dotted=self.words[number - 1].is_initial):
                break
            if (
                word.lower in PARTICLES
                and self._joined(number)
                and (self.words[number + 1].is_capitalised or self.words[number + 1].text in PARTICLES)
            ):
                continue
            if not self._may_be_part(number, first):
                break
            last = number
        if last is not None and all(word.is_initial for word in self.words[first : last + 1]):
            return None
        return last

    def _may_be_part(self, number: int, first: int) -> bool:
        word = self.words[number]
        if not word.is_capitalised or word.lower in words("not-names") or word.lower in words("eponym-nouns"):
            return False
        if word.is_loud and number > first:
            before = self.words[number - 1]
            return before.is_initial or before.lower in words("given-names") or word.lower in words("surnames")
        return True

    def _joined(self, number: int, dotted: bool = False) -> bool:
        """Return True if only a space or a line break is between a word and the next one."""
        if number + 1 >= len(self.words):
            return False
        gap = self.text[self.words[number].end : self.words[number + 1].start]
        return bool(_GAP.fullmatch(gap) or (dotted and _DOTTED_GAP.fullmatch(gap)))

    def _has_initial(self, first: int, last: int) -> bool:
        return any(word.is_initial for word in self.words[first + 1 : last])

    def _is_place(self, last: int) -> bool:
        """Return True if a name is that of a hospital, a study or a street."""
        following = self.words[last + 1 : last + 2]
        named = re.split(r"'s$", self.words[last].lower)[0]
        return named in _FACILITIES or any(word.lower in _FACILITIES and word.is_capitalised for word in following)

    def _follows_saint(self, number: int) -> bool:
        return number > 0 and self.words[number - 1].lower in ("st", "saint", "santa", "san", "queen", "king", "pope")

    def _initials(self) -> Iterator[tuple[int, int, str]]:
        for match in _INITIALS.finditer(self.text):
            letters = re.sub(r"\W", "", match[0])
            end = match.end()
            known = self.text[max(0, match.start() - CUE_CHARACTERS) : match.start()]
            follows = self.text[end : end + 40]
            cued = STRONG_CUE.search(known) or re.search(r"\b(?:patient|pt|mr|mrs|ms|miss)\.?\s$", known, re.IGNORECASE)
            if letters not in _NO_INITIALS and (cued or _AGED.match(follows) or _DID.match(follows)):
                yield match.start(), end, "initials"

    def mentioned_again(self, found: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
        """Yield further mentions of names that were found, such as a surname alone."""
        parts = {
            part.lower() for start, end, _ in found for part in re.findall(r"[^\W\d_][\w'-]{2,}", self.text[start:end])
        }
        parts -= words("not-names") | words("ambiguous-given-names") | words("eponym-nouns") | PARTICLES | TITLES
        for number, word in enumerate(self.words):
            if word.lower in parts and word.text[0].isupper() and not self._in_term(number):
                yield word.start, word.end, "mentioned again"

    def _in_term(self, number: int) -> bool:
        word = self.words[number]
        following = re.match(r"(?:'s|s')?[\s-]{1,2}(\w+)", self.text[word.end : word.end + 40])
        return bool(following and following[1].lower() in words("eponym-nouns")) or self._is_place(number)
