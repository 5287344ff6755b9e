"""Guess the language of texts, from their script, stop words and letters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from unicodedata import normalize

from r2med.foundation.text.english import STOP_WORDS
from r2med.foundation.text.highlight import COMMON_WORDS
from r2med.foundation.text.search_languages import ENGLISH, search_languages

READ_CHARACTERS = 2000
"""Number of characters of a text that are read."""

MIN_STOP_WORDS = 0.15
"""Minimum share of stop words. Texts with fewer are lists, or in a language that is not known here."""

MIN_TEXTS = 0.6
"""Minimum share of the texts that must look like the language of all."""

MIN_SCRIPT = 0.3
"""Minimum share of letters in the Chinese or Korean script. Notes in these languages contain many Latin names."""

_WORD = re.compile(r"[^\W\d_]+")
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

    None if too few words are its stop words, or if too few of the texts look like it.
    """
    found = [signs for text in texts if (signs := _signs(text)).scores]
    total: Counter[str] = Counter()
    for signs in found:
        total.update(signs.scores)
    if not total:
        return None
    code = max(total, key=total.__getitem__)
    stop_words = sum(signs.stop_words[code] for signs in found)
    share = sum(signs.scores[code] == max(signs.scores.values()) for signs in found) / len(found)
    if stop_words < MIN_STOP_WORDS * sum(signs.words for signs in found) or share < MIN_TEXTS:
        return None
    return LanguageGuess(code, search_languages()[code].name, share, len(found))


@dataclass(frozen=True)
class _Signs:
    """The signs of languages in a text: all of them, weighted, and the number of stop words."""

    words: int
    scores: Counter[str]
    stop_words: Counter[str]


def _signs(text: str) -> _Signs:
    text = normalize("NFC", text[:READ_CHARACTERS]).lower()
    words = _WORD.findall(text)
    if script := _script_language(text, sum(map(len, words))):
        counted = Counter({script: len(words)})
        return _Signs(len(words), counted, counted)
    scores: Counter[str] = Counter()
    stop_words: Counter[str] = Counter()
    for word in words:
        stop_words.update(_word_weights().get(word, {}).keys())
        letters = (_letter_weights().get(letter, {}) for letter in set(word))
        for weights in (_word_weights().get(word, {}), *letters):
            for code, weight in weights.items():
                scores[code] += weight  # type: ignore[assignment]
    return _Signs(len(words), scores, stop_words)


def _script_language(text: str, letters: int) -> str:
    """Return the language that the script of a text decides; empty if several languages use the script."""
    if len(_HANGUL.findall(text)) > MIN_SCRIPT * letters:
        return "ko"
    if len(_HAN.findall(text)) > MIN_SCRIPT * letters and not _KANA.search(text):
        return "zh"
    return ""


@cache
def _word_weights() -> Mapping[str, Mapping[str, float]]:
    stop_words = {code: language.stop_words for code, language in search_languages().items()}
    return _weights({**stop_words, ENGLISH: STOP_WORDS | frozenset(COMMON_WORDS.split())})


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
