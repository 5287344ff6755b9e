"""Analysers: from text to index terms, for each language that BM25 can search."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import metadata
from threading import Lock
from unicodedata import combining, normalize

from r2med.foundation.core.errors import UserError
from r2med.foundation.text.english import CHUNK_PATTERN, MAX_REMEMBERED_TERMS, analyse_chunks, english, located_terms
from r2med.foundation.text.search_languages import ENGLISH, SearchLanguage, Words, search_language
from r2med.foundation.text.segment import segment

VERSION = 1
"""Version of the analyses except English. Increase it when terms change, because scores change too."""
FOLDING_VERSION = 2
"""Version of the analyses that fold accents."""

Span = tuple[int, int, str]
"""Start, stop, and the text or the index term between them."""

_APOSTROPHE = re.compile("['\u2019\uff07]")
_HANGUL = re.compile("[\uac00-\ud7a3]+|[^\uac00-\ud7a3]+")
_HAN = re.compile("[\u3005\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")
_JIEBA_PARTS = re.compile("[\u4e00-\u9fd5]+|.", re.DOTALL)
"""What is searched for words. All other signs are words of one sign in jieba; its port in Rust would join them."""


@dataclass(frozen=True)
class Analyser:
    """The analysis of one language. Chunks are parts of a text without white space."""

    key: str
    """Names the analysis in keys, with the version of its library and a digest of its stop words and other tables."""
    terms: Callable[[str], list[str]]
    """Return the index terms of a text, in order."""
    located_terms: Callable[[str], tuple[Span, ...]]
    """Return (start, stop, index term) of each word of a chunk that is not a stop word."""
    analyse_chunks: Callable[[Sequence[str]], list[tuple[str, ...]]]
    """Return the index terms of each chunk."""


@cache
def analyser(code: str) -> Analyser:
    """Return the analyser of a language. Raises UserError if there is none, or if its library is not installed."""
    if code == ENGLISH:
        return Analyser("lucene-english", english, located_terms, analyse_chunks)
    language = search_language(code)
    return _LanguageAnalysis(language).analyser()


def installed_language(code: str) -> str:
    """Return the code of a language if it can be analysed here, and else English."""
    try:
        analyser(code)
    except UserError:
        return ENGLISH
    return code


class _LanguageAnalysis:
    """The analysis of a language other than English. The term of each distinct word is remembered."""

    def __init__(self, language: SearchLanguage) -> None:
        self._language = language
        self._stem = _snowball(language) if language.stemmer else str
        self._words = _WORDS[language.words]
        self._terms: dict[str, str] = {}

    def analyser(self) -> Analyser:
        """Return the functions of this analysis."""
        return Analyser(
            _key(self._language),
            self._text_terms,
            lru_cache(maxsize=1 << 16)(self._located),
            lambda chunks: [tuple(term for _, _, term in self._located(chunk)) for chunk in chunks],
        )

    def _text_terms(self, text: str) -> list[str]:
        return [term for chunk in CHUNK_PATTERN.findall(text) for _, _, term in self._located(chunk)]

    def _located(self, chunk: str) -> tuple[Span, ...]:
        words = self._words(chunk)
        return tuple((start, stop, term) for start, stop, word in words if (term := self._term(word)))

    def _term(self, word: str) -> str:
        """Return the index term of a word; empty for a stop word."""
        if (term := self._terms.get(word)) is None:
            term = self._term_of(word)
            if len(self._terms) < MAX_REMEMBERED_TERMS:
                self._terms[word] = term
        return term

    def _term_of(self, word: str) -> str:
        # Files from a Mac and texts of PDFs have accents as characters of their own, which stemmers do not know.
        word = normalize("NFC", word).lower()
        if self._language.elisions and len(parts := _APOSTROPHE.split(word, 1)) == 2:
            word = parts[1] if parts[0] in self._language.elisions else word
        if word in self._language.stop_words:
            return ""
        stem = self._stem(word)
        return _without_accents(stem) if self._language.folds_accents else stem


_LIGATURES = str.maketrans({"œ": "oe", "æ": "ae"})
"""Letters that people also write as two, and that Unicode does not take apart."""


def _without_accents(word: str) -> str:
    return "".join(letter for letter in normalize("NFD", word) if not combining(letter)).translate(_LIGATURES)


def _tokens(chunk: str) -> Iterator[Span]:
    """Yield the words between blanks and punctuation, as Unicode and Lucene's StandardTokenizer define them."""
    stop = 0
    for token in segment(chunk):
        start = chunk.index(token, stop)
        stop = start + len(token)
        yield start, stop, token


def _chinese(chunk: str) -> Iterator[Span]:
    """Yield the Chinese words that jieba finds, and the words of other scripts between them."""
    at = 0
    for run in _HAN.finditer(chunk):
        yield from ((at + start, at + stop, word) for start, stop, word in _tokens(chunk[at : run.start()]))
        at = run.start()
        for word in chinese_words(run[0]):
            yield at, at + len(word), word
            at += len(word)
    yield from ((at + start, at + stop, word) for start, stop, word in _tokens(chunk[at:]))


def chinese_words(run: str) -> list[str]:
    """Return the words of a run of Chinese characters, in order: jieba's precise mode, which covers every character."""
    import rjieba

    return [str(word) for part in _JIEBA_PARTS.findall(run) for word in (rjieba.cut(part) if len(part) > 1 else part)]


def _pairs(chunk: str) -> Iterator[Span]:
    """Yield overlapping pairs of Hangul syllables, as Lucene's CJK analyser does, and the words of other scripts.

    Particles are written at the end of a Korean word. Without them the pairs of a word still match.
    """
    for start, stop, token in _tokens(chunk):
        composed = normalize("NFC", token)
        for first, last in _pair_bounds(composed):
            # The characters of a decomposed token have other positions: then the whole token is the span.
            span = (start + first, start + last) if composed == token else (start, stop)
            yield *span, composed[first:last]


def _pair_bounds(token: str) -> Iterator[tuple[int, int]]:
    for part in _HANGUL.finditer(token):
        if len(part[0]) <= 2 or not "\uac00" <= part[0][0] <= "\ud7a3":
            yield part.span()
        else:
            yield from ((first, first + 2) for first in range(part.start(), part.end() - 1))


_WORDS: Mapping[Words, Callable[[str], Iterator[Span]]] = {"blanks": _tokens, "jieba": _chinese, "pairs": _pairs}


def _snowball(language: SearchLanguage) -> Callable[[str], str]:
    from Stemmer import Stemmer

    stem, lock = Stemmer(language.stemmer, 0).stemWord, Lock()

    def stemmed(word: str) -> str:
        with lock:  # a Snowball stemmer works in a buffer of its own, and several threads search
            return str(stem(word))

    return stemmed


def _library_version(language: SearchLanguage) -> str:
    """Return the name and version of the library, because another version may give other stems or words."""
    package = "PyStemmer" if language.stemmer else "rjieba" if language.words == "jieba" else ""
    return f" {package} {metadata.version(package)}" if package else ""


def _key(language: SearchLanguage) -> str:
    version = FOLDING_VERSION if language.folds_accents else VERSION
    return f"{language.code} {version}{_library_version(language)} tables {_tables_digest(language)}"


def _tables_digest(language: SearchLanguage) -> str:
    """Return a digest of everything that the data file says about the analysis of a language."""
    tables = [*map(sorted, (language.stop_words, language.elisions)), language.folds_accents, language.words]
    return hashlib.sha256(repr(tables).encode()).hexdigest()[:8]
