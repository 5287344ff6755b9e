"""Find which medical terms mean the same, by a table of concepts and their terms.

Terms are compared in a normal form: case, accents, hyphens, apostrophes, plurals and British spellings do not matter,
and "Infarction, Myocardial" equals "myocardial infarction".
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

from r2med.foundation.text.plurals import counted
from r2med.foundation.text.synonym_files import read_terms

MAX_WORDS = 32
"""Maximum number of words of a term that is searched in texts. It keeps the search linear in the length of a text."""
_MAX_EXAMPLES = 3
"""Maximum number of ambiguous terms that a note lists."""

_WORD = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]"  # Chinese and Japanese are written without spaces
    "|[\u0370-\u03ff]"  # a Greek letter is a word: TNFα and TNF-alpha
    r"|(?:[^\W\d_]\.){2,}"  # M.I.
    r"|[^\W_\u0370-\u03ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+"
    r"(?:['’ʼ‘`´][^\W_]+)*"
    "|[^\\w\\s'’ʼ‘`´_/\u2010-\u2015\u2212-]"  # punctuation ends a term, except for apostrophes, slashes and hyphens
)
_POSSESSIVE = re.compile(r"['’ʼ‘`´](?:s\b)?", re.IGNORECASE)
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,5}")
_ACRONYMS = re.compile(r"([A-Z]{2,5})s")
_GREEK = {
    unicodedata.lookup(f"GREEK SMALL LETTER {name}"): name.lower() for name in ("ALPHA", "BETA", "GAMMA", "DELTA")
}


class Synonyms:
    """Concepts and the terms that name them.

    The name of a concept is one of its terms. A concept whose name is a term of another concept is the same concept. A
    term that two concepts have belongs to the first. `notes` says in one line each where this was decided.
    """

    def __init__(self, terms: Iterable[tuple[str, str]], source: str = "the table") -> None:
        """Take (concept, term) pairs. `source` names the table in notes."""
        forms = _Forms()
        rows = [(concept.strip(), term.strip()) for concept, term in terms]
        names = _Names((concept for concept, _ in rows), forms)
        # A row in which a concept's name is the term of another concept says that both are one.
        joined = [(concept, term) for concept, term in rows if names.join(concept, term)]
        rows = [*names.rows(), *((names.first(concept), term) for concept, term in rows)]
        self._concepts: dict[str, str] = {}
        self._acronyms: set[str] = set()
        self._lengths: dict[str, int] = {}
        self._further: dict[str, dict[str, None]] = {}
        ambiguous: dict[str, str] = {}
        for concept, term in rows:
            if (known := self._add(forms[term], concept, term)) != concept:
                self._further.setdefault(forms[term], {})[concept] = None
                ambiguous.setdefault(forms[term], f"{term!r} ({known}, not {concept})")
        for concept, term in rows:
            for form in _without_commas(term):  # after all terms as they are written, which count first
                self._add(form, concept, term)
        self._terms: dict[str, dict[str, None]] = {}
        for concept, term in rows:
            self._terms.setdefault(concept, {})[term] = None
        self.notes = _notes(source, joined, list(ambiguous.values()))

    @classmethod
    def read(cls, path: str | Path) -> Synonyms:
        """Read a table of synonyms: CSV or TSV with the columns concept and term.

        Raises UserError if the file cannot be read.
        """
        return cls(read_terms(Path(path)), source=Path(path).name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all concepts, in the order of the table."""
        return tuple(self._terms)

    def terms(self, concept: str) -> tuple[str, ...]:
        """Return the terms of a concept as the table writes them; nothing if the table does not have the concept."""
        return tuple(self._terms.get(concept, ()))

    def concept(self, term: str) -> str | None:
        """Return the concept that a term names; None if the table does not have the term."""
        return next((self._concepts[form] for form in term_forms(term) if form in self._concepts), None)

    def meanings(self, term: str) -> tuple[str, ...]:
        """Return all concepts that have a term, the first one first; nothing if the table does not have the term."""
        first, form = self.concept(term), normal_term(term) or term
        return (first, *(each for each in self._further.get(form, ()) if each != first)) if first else ()

    def concepts(self, text: str) -> dict[str, set[str]]:
        """Return the concepts in a running text, each with its terms as the text writes them.

        At each word the longest term counts. A term of one word in capitals, such as MI or ALL, counts only if the text
        writes it in capitals too.
        """
        found: dict[str, set[str]] = {}
        for concept, start, end in self.spans(text):
            found.setdefault(concept, set()).add(text[start:end])
        return found

    def spans(self, text: str) -> Iterator[tuple[str, int, int]]:
        """Yield (concept, start, end) of each term in a text. Terms do not overlap."""
        words = [(normal_word(match[0]), *match.span()) for match in _WORD.finditer(text)]
        position = 0
        while position < len(words):
            step = 1
            for length in range(min(self._lengths.get(words[position][0], 0), len(words) - position), 0, -1):
                form = " ".join(word for word, _, _ in words[position : position + length])
                start, end = words[position][1], words[position + length - 1][2]
                if (concept := self._concepts.get(form)) and self._counts(form, text[start:end]):
                    yield concept, start, end
                    step = length
                    break
            position += step

    def _counts(self, form: str, written: str) -> bool:
        return form not in self._acronyms or sum(map(str.isupper, written)) > 1

    def _add(self, form: str, concept: str, term: str) -> str:
        """Add a normal form of a term, unless another concept has it. Return the concept that has it."""
        words = form.split()
        if not words:
            return concept
        if len(words) <= MAX_WORDS:
            self._lengths[words[0]] = max(self._lengths.get(words[0], 0), len(words))
        if not _ACRONYM.fullmatch(term):
            self._acronyms.discard(form)  # a table that also has "cold" means the word
        elif form not in self._concepts:
            self._acronyms.add(form)
        return self._concepts.setdefault(form, concept)


class _Forms(dict[str, str]):
    """Terms and their normal forms, each computed once. A term of punctuation only is its own form."""

    def __missing__(self, term: str) -> str:
        form = self[term] = normal_term(term) or term
        return form


Member = TypeVar("Member", bound=Hashable)


class JoinedGroups(Generic[Member]):
    """Members in groups. Joining two members joins their groups; a member that was never joined is a group alone."""

    def __init__(self) -> None:
        self._above: dict[Member, Member] = {}

    def join(self, one: Member, other: Member) -> None:
        """Put two members, with all that belong to them, into one group. The first of `one` represents it."""
        self._above[self.first(other)] = self.first(one)

    def first(self, member: Member) -> Member:
        """Return the member that represents the group of a member."""
        self._above.setdefault(member, member)
        while self._above[member] != member:
            self._above[member] = self._above[self._above[member]]
            member = self._above[member]
        return member


class _Names:
    """Names of concepts, joined where one is a term of another."""

    def __init__(self, names: Iterable[str], forms: _Forms) -> None:
        self._forms = forms
        self._written: dict[str, str] = {}
        for name in names:
            self._written.setdefault(forms[name], name)
        self._joined: JoinedGroups[str] = JoinedGroups()
        self._order = {form: number for number, form in enumerate(self._written)}

    def join(self, concept: str, term: str) -> bool:
        """Join a concept with the concept that the term names. Return True if they were two."""
        if self._forms[term] not in self._written:
            return False
        one, other = self._joined.first(self._forms[concept]), self._joined.first(self._forms[term])
        if one == other:
            return False
        first, second = sorted((one, other), key=self._order.__getitem__)
        self._joined.join(first, second)
        return True

    def first(self, name: str) -> str:
        """Return the first name of a concept."""
        return self._written[self._joined.first(self._forms[name])]

    def rows(self) -> Iterator[tuple[str, str]]:
        """Yield (first name, name) for each name of each concept."""
        for form, name in self._written.items():
            yield self._written[self._joined.first(form)], name


def normal_term(term: str) -> str:
    """Return the normal form of a term: normal words, with single spaces. Two terms with one form are one term."""
    if not term.isascii():  # a soft hyphen and a space without width are invisible
        term = "".join(sign for sign in term if unicodedata.category(sign) != "Cf")
    words = [normal_word(word) for word in _WORD.findall(term)]
    while words and not words[-1][-1].isalnum():
        words.pop()
    while words and not words[0][0].isalnum():
        words.pop(0)
    return " ".join(words)


def term_forms(term: str) -> tuple[str, ...]:
    """Return the normal form of a term, and those of "Infarction, Myocardial" in natural order."""
    return normal_term(term), *_without_commas(term)


@lru_cache(maxsize=1 << 16)
def normal_word(word: str) -> str:
    """Return a word without case, accents, possessive and plural s, in American spelling."""
    word = _ACRONYMS.sub(r"\1", word) if _ACRONYMS.fullmatch(word) else word
    word = unicodedata.normalize("NFKD", _POSSESSIVE.sub("", word)).casefold()
    word = "".join(sign for sign in word if not unicodedata.combining(sign)).replace(".", "") or word
    word = _GREEK.get(word, word)
    if len(word) <= 4:  # AIDS and SARS are not plurals
        return word
    word = word.replace("ae", "e").replace("oe", "e")
    word = f"{word[:-3]}or" if word.endswith("our") else f"{word[:-4]}ors" if word.endswith("ours") else word
    return _singular(word)


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return f"{word[:-3]}y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_commas(term: str) -> Iterator[str]:
    """Yield the normal forms of "Diabetes Mellitus, Type 2" in natural order and without the comma."""
    parts = [part for part in map(normal_term, term.split(",")) if part] if "," in term else []
    if len(parts) < 2:
        return
    yield " ".join(reversed(parts))
    yield " ".join(parts)


def _notes(source: str, joined: list[tuple[str, str]], ambiguous: list[str]) -> tuple[str, ...]:
    notes = []
    if joined:
        number, listed = counted(len(joined), "concept"), _listed([f"{one!r} = {other!r}" for one, other in joined])
        notes.append(f"{source}: {number} named as a term of another concept; both count as one: {listed}")
    if ambiguous:
        number, listed = counted(len(ambiguous), "term"), _listed(ambiguous)
        notes.append(f"{source}: {number} in two concepts; the first concept counts: {listed}")
    return tuple(notes)


def _listed(examples: list[str]) -> str:
    more = len(examples) - _MAX_EXAMPLES
    return ", ".join(examples[:_MAX_EXAMPLES]) + (f", and {more:,} more" if more > 0 else "")
