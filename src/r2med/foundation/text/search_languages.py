"""The languages that BM25 can analyse, from a data file: names, stemmers and stop words."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from r2med.foundation.core.errors import UserError

ENGLISH = "en"
"""The default language. Lucene's English analysis needs no data from the file."""


Words = Literal["blanks", "jieba", "pairs"]
"""How words are found: between blanks, by jieba's dictionary, or as overlapping pairs of syllables."""


@dataclass(frozen=True)
class SearchLanguage:
    """A language and the parts of its analysis."""

    code: str
    name: str
    stemmer: str = ""
    """The name of its Snowball stemmer; empty if words are not stemmed."""
    words: Words = "blanks"
    elisions: frozenset[str] = frozenset()
    """Words that lose their vowel and are joined to the next word by an apostrophe, such as the l of l'hôpital."""
    folds_accents: bool = False
    """True if stems lose their accents, because people often leave them out, as in HOPITAL."""
    stop_words: frozenset[str] = frozenset()
    letters: frozenset[str] = frozenset()
    """Latin letters of the language besides a to z."""
    note_words: frozenset[str] = frozenset()
    """Words by which notes in short style are recognised. Unlike stop words, they are searched."""
    endings: frozenset[str] = frozenset()
    """Endings by which long words are recognised."""


@cache
def search_languages() -> Mapping[str, SearchLanguage]:
    """Return code -> language, English first, the others in alphabetical order of their codes."""
    table = tomllib.loads(files(__package__).joinpath("search_languages.toml").read_text(encoding="utf-8"))
    listed = ("elisions", "stop_words", "letters", "note_words", "endings")
    languages = {ENGLISH: SearchLanguage(ENGLISH, "English")}
    for code, facts in table.items():
        lists: dict[str, Any] = {key: frozenset(facts.pop(key).split()) for key in listed if key in facts}
        languages[code] = SearchLanguage(code, **facts, **lists)
    return languages


def search_language(code: str) -> SearchLanguage:
    """Return the language of a code. Raises UserError if there is no analysis for it."""
    if code not in search_languages():
        codes = ", ".join(f"{language.code} {language.name}" for language in search_languages().values())
        raise UserError(f"no analysis for the language {code!r}: name it by its code: {codes}")
    return search_languages()[code]
