"""Guess the language of texts, from their script, stop words and letters."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import ascii_lowercase
from unicodedata import normalize

from r2med.foundation.text.english import STOP_WORDS
from r2med.foundation.text.highlight import COMMON_WORDS
from r2med.foundation.text.search_languages import ENGLISH, search_languages

READ_CHARACTERS = 2000
"""Number of characters of a text that are read."""

MIN_SIGNS = 0.15
"""Minimum share of words that are signs. Texts with fewer are lists, or in a language that is not known here."""

MIN_DIFFERENT = 3
"""Minimum number of different signs. One word is no language: de is French, Spanish, and in `de novo` English."""

MIN_TEXTS = 0.6
"""Minimum share of the texts with signs that must look like the language of all."""

MIN_WITH_SIGNS = 0.5
"""Minimum share of the texts with words that must have signs."""

MIN_MIXED = 0.2
"""Minimum share of the texts in a language that is named if the texts are mixed."""

MIN_SCRIPT = 0.3
"""Minimum share of letters in the Chinese or Korean script. Notes in these languages contain many Latin names."""

MIN_ENDING_WORD = 7
"""Minimum number of letters of a word whose ending counts. Young and lung are English."""

# Single Latin letters are no words: o.B., Z.n. and c/o are abbreviations, and m is a sex.
_WORD = re.compile(r"[^\W\d_]{2,}|[\u0400-\u04ff]")
_LATIN = frozenset(map(chr, (*range(0xDF, 0x250), *range(0x1EA0, 0x1F00))))
"""Small Latin letters beyond a to z."""
_HANGUL = re.compile("[\uac00-\ud7a3\u1100-\u11ff]")
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff]")
_KANA = re.compile("[\u3041-\u30ff]")


@dataclass(frozen=True)
class LanguageGuess:
    """The language of a sample of texts."""

    code: str
    name: str
    share: float
    """Share of the texts in which no other language has more signs."""
    texts: int
    """Number of texts in the sample that have signs of any language."""


def guess_language(texts: Iterable[str]) -> LanguageGuess | None:
    """Return the language that has the most signs in all texts together, because single notes are short.

    None if too few words or texts have its signs, or if too few of the texts look like it.
    """
    read = [signs for text in texts if (signs := _signs(text)).words]
    found = [signs for signs in read if signs.scores]
    total: Counter[str] = Counter()
    for signs in found:
        total.update(signs.scores)
    if not total or len(found) < MIN_WITH_SIGNS * len(read):
        return None
    code = max(total, key=total.__getitem__)
    share = sum(signs.scores[code] == max(signs.scores.values()) for signs in found) / len(found)
    if not _are_enough(found, [code] * len(found)) or share < MIN_TEXTS:
        return None
    return LanguageGuess(code, search_languages()[code].name, share, len(found))


def mixed_languages(texts: Iterable[str]) -> dict[str, float]:
    """Return the names of the languages of mixed texts with their shares of the texts, the most common one first.

    Empty if too few words are signs, or if only one language is found.
    """
    found = [signs for text in texts if (signs := _signs(text)).scores]
    best = [max(signs.scores, key=signs.scores.__getitem__) for signs in found]
    if not _are_enough(found, best):
        return {}
    counts = [(code, count / len(found)) for code, count in Counter(best).most_common()]
    shares = {search_languages()[code].name: share for code, share in counts if share >= MIN_MIXED}
    return shares if len(shares) > 1 else {}


@dataclass(frozen=True)
class _Signs:
    """The signs of languages in a text."""

    words: int
    scores: Counter[str]
    """Language -> sum of the weights of its signs."""
    signs: Mapping[str, Counter[str]]
    """Language -> the words that are its signs."""


def _are_enough(texts: Sequence[_Signs], codes: Iterable[str]) -> bool:
    """Return True if enough words of the texts are signs of their languages, and enough of these words differ."""
    signs = Counter[str]()
    for text, code in zip(texts, codes, strict=True):
        signs.update(text.signs.get(code, {}))
    return len(signs) >= MIN_DIFFERENT and signs.total() >= MIN_SIGNS * sum(text.words for text in texts)


def _signs(text: str) -> _Signs:
    text = normalize("NFC", text[:READ_CHARACTERS]).lower()
    words = _WORD.findall(text)
    letters = "".join(words)
    if script := _script_language(text, len(letters)):
        return _Signs(len(letters), Counter({script: len(letters)}), {script: Counter(letters)})
    scores: Counter[str] = Counter()
    signs: dict[str, Counter[str]] = defaultdict(Counter)
    for word in words:
        for code, weight in _word_weights_of(word).items():
            scores[code] += weight
            signs[code][word] += 1
    spelled = _languages_with(letters)
    for word in words:
        for code, weight in _letter_weights_of(word).items():
            scores[code] += weight
            # If only one language has all letters of the text, and the text has other signs of it, letters are signs.
            if spelled == {code} and code in signs and code not in _word_weights_of(word):
                signs[code][word] += 1
    for code in set(scores):
        if _foreign_words(words, code) >= max(1, signs[code].total()):
            del scores[code]
    return _Signs(len(words), scores, signs)


def _languages_with(letters: str) -> frozenset[str]:
    """Return the languages that have all letters of a text."""
    beyond = set(letters) - set(ascii_lowercase)
    return frozenset(code for code, language in search_languages().items() if beyond <= language.letters)


def _foreign_words(words: Sequence[str], code: str) -> int:
    """Return the number of words with Latin letters that a language does not have."""
    foreign = _LATIN - search_languages()[code].letters
    return sum(not foreign.isdisjoint(word) for word in words)


def _word_weights_of(word: str) -> Counter[str]:
    """Return the weight of a word and of its ending for each language."""
    weights: Counter[str] = Counter(_word_weights().get(word, {}))
    if len(word) >= MIN_ENDING_WORD:
        weights.update({code: 1 for code, endings in _endings().items() if word.endswith(endings)})
    return weights


def _letter_weights_of(word: str) -> Counter[str]:
    """Return the weight of the letters of a word for each language."""
    weights: Counter[str] = Counter()
    for letter in set(word):
        weights.update(_letter_weights().get(letter, {}))
    return weights


def _script_language(text: str, letters: int) -> str:
    """Return the language that the script of a text decides; empty if several languages use the script."""
    if len(_HANGUL.findall(text)) > MIN_SCRIPT * letters:
        return "ko"
    if len(_HAN.findall(text)) > MIN_SCRIPT * letters and not _KANA.search(text):
        return "zh"
    return ""


@cache
def _endings() -> Mapping[str, tuple[str, ...]]:
    return {code: tuple(language.endings) for code, language in search_languages().items() if language.endings}


@cache
def _word_weights() -> Mapping[str, Mapping[str, float]]:
    words = {code: language.stop_words | language.note_words for code, language in search_languages().items()}
    return _weights({**words, ENGLISH: STOP_WORDS | frozenset(COMMON_WORDS.split())})


@cache
def _letter_weights() -> Mapping[str, Mapping[str, float]]:
    return _weights({code: language.letters for code, language in search_languages().items()})


def _weights(signs: Mapping[str, frozenset[str]]) -> Mapping[str, Mapping[str, float]]:
    """Return sign -> language -> weight. A sign that several languages have says less about each."""
    languages: dict[str, list[str]] = {}
    for code, own in signs.items():
        for sign in own:
            languages.setdefault(sign, []).append(code)
    return {sign: dict.fromkeys(codes, 1 / len(codes)) for sign, codes in languages.items()}
