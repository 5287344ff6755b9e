"""The meaning of column names: `column_words.toml` lists common names and words in six languages."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_UNSPACED = re.compile("[\u0e00-\u0e7f\u1100-\u11ff\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
"""A character of Thai, Japanese, Chinese or Korean. Names in these scripts have no spaces, or several words in one."""


@cache
def words_by_meaning() -> Mapping[str, Mapping[str, str]]:
    """Return `column_words.toml`: meaning -> language -> words."""
    return tomllib.loads(files(__package__).joinpath("column_words.toml").read_text(encoding="utf-8"))


def folded(name: str) -> str:
    """Return a name in lower case and without accents."""
    text = unicodedata.normalize("NFKD", name.replace("ß", "ss").lower())
    return "".join(letter for letter in text if not unicodedata.combining(letter))


def plain_name(name: str) -> str:
    """Return a name in lower case, with letters only: `N.º de informe` becomes `nodeinforme`."""
    return re.sub(r"[\W\d_]", "", folded(name))


def _names(*meanings: str) -> frozenset[str]:
    lists = (words for meaning in meanings for words in words_by_meaning()[meaning].values())
    return frozenset(plain_name(word) for words in lists for word in words.split())


_NO_AS_ANSWER = re.compile(r"(?:\b(?:yes|s[iíì])\b.*|=\s*)no[\W\d]*$", re.IGNORECASE)
"""The end of a name in which `no` is an answer and not a number: `relevant (yes/no)`, `relevant, 0 = no`."""
_NUMBER_OF = re.compile(r"(?:number|num|numero|n) (?:of|de) ")
_RELEVANT = frozenset("relevant relevante relevantes relevants pertinent pertinente pertinents pertinentes".split())
_NUMBER_WORDS = _names("any_id") - {"key", "uid", "ref", "code", "lfd", "lfdnr"}
GENERIC_IDS = _names("any_id")
"""Names of ids of anything."""

DOCUMENT_IDS = _names("document_id")
"""Names that only a column of document ids has."""

QUESTION_IDS = _names("question_id")
"""Names that only a column of question ids has."""

QUESTION_NAMES = _names("question")
"""Names that only a column of questions has."""

OTHER_NAMES = _names("other")
"""Names of columns that are neither searched nor judged. They help to recognise a row of column names."""

TOTAL_WORDS = _names("total")
"""First cells of rows that add up a table."""

NAMES: Mapping[str, frozenset[str]] = {
    "id": GENERIC_IDS | DOCUMENT_IDS,
    "text": _names("text"),
    "title": _names("title"),
    "query_id": QUESTION_IDS | (GENERIC_IDS - {"ref", "code"}),
    "query": QUESTION_NAMES | _names("maybe_question"),
    "answer": _names("answer"),
    "relevant": _RELEVANT | DOCUMENT_IDS | _names("documents"),
    "grade": _RELEVANT | _names("verdict"),
    "links": _names("links"),
}
"""Role -> common names of its column, as `plain_name` writes them."""

ALL_NAMES = frozenset().union(*NAMES.values(), OTHER_NAMES) - {"no", "x"}
"""All known names. `no` is left out because it can mean "no" as well as "number"."""

COVER_SHEET = re.compile(
    r"^(cover|title|legend|read.?me|info|about|codebook|data.?dictionary|lookup|deckblatt|titelblatt|legende|hinweise?"
    r"|erl[aä]uterung|page de garde|couverture|l[ée]gende|lisez|portada|car[aá]tula|leyenda|instrucciones"
    r"|instructions?|anleitung|metadat(a|en|os)|说明|封面|図例|凡例|説明)(?![^\W\d_])",
    re.IGNORECASE,
)
"""Names of sheets that explain the other sheets."""

QUESTION_FILE = re.compile(
    r"quer|question|ask|frage|pregunta|consulta|requ[eê]te|问题|查询|質問",
    re.IGNORECASE,
)
"""Names of files and sheets that hold questions."""


def is_called_id(name: str) -> bool:
    """Return True if a name is that of an id column, or begins or ends with such a word, as `Nº petición` does."""
    words, plain = _words(_NO_AS_ANSWER.sub("", name)), plain_name(name)
    if plain in NAMES["id"] or (bool(words) and not {words[0], words[-1]}.isdisjoint(_NUMBER_WORDS)):
        return True
    return any(plain.startswith(word) or plain.endswith(word) for word in _NUMBER_WORDS if _UNSPACED.search(word))


def is_question_id(name: str) -> bool:
    """Return True if a name is that of a column of question ids, as `question number` is."""
    if plain_name(name) in QUESTION_IDS:
        return True
    return is_called_id(name) and plain_name(name) not in DOCUMENT_IDS and _has(name, _meaning("question"))


def says_not_relevant(name: str) -> bool:
    """Return True if a name says that what the column names is not relevant: `hard_negatives`, `falsche Befunde`."""
    words = _words(name)
    if _has(name, _meaning("not_relevant")) or not _meaning("negation").whole.isdisjoint(words):
        return True
    weak = [number for number, word in enumerate(words) if word in _meaning("weak_negation").whole]
    return bool(weak) and _says_relevance(" ".join(words[weak[0] + 1 :]))


def says_relevant(name: str) -> bool:
    """Return True if a name says that what the column names is relevant: `relevant notes`."""
    return not says_not_relevant(name) and not says_something_else(name) and _has(name, _meaning("relevant"))


def may_say_relevant(name: str) -> bool:
    """Return True if a name says that the ids of a column are those of relevant documents: `relevant notes`, `gold`."""
    if says_not_relevant(name) or says_something_else(name):
        return False
    return _has(name, _meaning("relevant")) or _has(name, _meaning("maybe_relevant"))


def says_something_else(name: str) -> bool:
    """Return True if a name says something about documents other than relevance: `retrieved`, `number of notes`."""
    if plain_name(name) in NAMES["relevant"]:
        return False
    counts = _has(name, _meaning("count_or_status")) or bool(_NUMBER_OF.match(" ".join(_words(name))))
    return counts or (_has(name, _meaning("retrieved")) and not _says_relevance(name))


def says_verdict(name: str) -> bool:
    """Return True if a name says that the column holds grades of relevance: `relevant?`, `is_correct`, `passt`."""
    if says_not_relevant(name) or says_something_else(name):
        return False
    return plain_name(name) in NAMES["grade"] or _says_relevance(name)


def names_documents(name: str) -> bool:
    """Return True if a name has a word for ids or documents: `relevant notes`, `gold ids`."""
    words = {*_words(name), *(word.removesuffix("s") for word in _words(name))}
    return is_called_id(name) or not words.isdisjoint(NAMES["relevant"] - _RELEVANT | {"id"})


def _says_relevance(name: str) -> bool:
    return _has(name, _meaning("relevant")) or _has(name, _meaning("verdict"))


@dataclass(frozen=True)
class _Words:
    """The words of a meaning: whole words, beginnings of words, and parts of names without spaces."""

    whole: frozenset[str]
    beginnings: tuple[str, ...]
    parts: tuple[str, ...]


@cache
def _meaning(meaning: str) -> _Words:
    words = [word for words in words_by_meaning()[meaning].values() for word in words.split()]
    plain = {word: plain_name(word) for word in words}
    parts = {word for word in words if _UNSPACED.search(word)}
    return _Words(
        frozenset(plain[word] for word in words if word not in parts and word[-1] != "*"),
        tuple(sorted({plain[word] for word in words if word[-1] == "*"})),
        tuple(sorted(plain[word] for word in parts)),
    )


def _has(name: str, words: _Words) -> bool:
    own, plain = _words(name), plain_name(name)
    return (
        not words.whole.isdisjoint([*own, plain])
        or any(word.startswith(words.beginnings) for word in own)
        or any(part in plain for part in words.parts)
    )


def _words(name: str) -> list[str]:
    """Return the words of a name: `isRelevant`, `is_relevant` and `is relevant` have the same ones."""
    return re.findall(r"[^\W\d_]+", folded(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)))
