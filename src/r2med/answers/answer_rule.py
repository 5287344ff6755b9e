"""Decide by a rule if a text gives the reference answer. Negated, excluded or listed answers are left to a judge."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from r2med.text.english import english
from r2med.text.sentences import sentences

MAX_ANSWER_TERMS = 8
"""Maximum number of terms in a reference answer that the rule can look for. A longer answer is a whole text."""

_FINAL = re.compile(r"(?:final answer|answer|diagnosis)\s*(?:is|:)\s*([^\n]+)", re.IGNORECASE)
_ASIDE = re.compile(r"\s*\([^)]*\)")
_CLAUSE = re.compile(r"[;—–]|,\s*(?:but|however|instead)\b", re.IGNORECASE)
_LINE_OF_LIST = re.compile(r"\s*(?:[-*•]|\(?\d{1,2}[.)]|\(?[A-Za-z][.)])\s+")
_NOT_ASSERTED = re.compile(
    r"\b(?:not|no|never|nor|neither|without|cannot|unlike|unlikely|exclud\w+|rul\w+ (?:\w+ )?out|rather than|instead of"
    r"|less likely|against|mimic\w*|differ\w*|distinguish\w*|absen\w+|negative|den(?:y|ies|ied)|or|either|versus|vs|may"
    r"|might|could|possib\w+|consider\w*|suspect\w*|includ\w+|such as|among|alternativ\w+|candidates?|e\.g)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)
"""Words near an answer that is denied or is one of several."""
_STATES = re.compile(r"\b(?:is|was|are|be|has|have|had|as|diagnos\w+|answer|suggest\w*|indicat\w*)\b", re.IGNORECASE)


def by_rule(text: str, gold: str) -> bool | None:
    """Return True if a text gives the reference answer, False if not; None if the rule cannot decide.

    A text is right if it contains the terms of the answer in a row and states them each time: not denied, doubted or
    one of several. If the text marks its final answer, only that part counts. A text is wrong if it contains none of
    the terms. All other texts may contain a synonym, or an answer that is excluded, and stay undecided.
    """
    forms = [terms for form in dict.fromkeys((gold, _ASIDE.sub("", gold))) if (terms := english(form))]
    if not forms or min(map(len, forms)) > MAX_ANSWER_TERMS:
        return None
    marked = _FINAL.findall(text)
    stated = [_is_stated(clause, forms) for clause in _mentions(marked[-1] if marked else text, forms)]
    if stated:
        return True if all(stated) else None
    return None if set(english(text)) & set().union(*forms) else False


def _mentions(text: str, forms: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each clause that names the answer; an empty text if the clause is a question or part of a list."""
    lines = text.splitlines()
    has_list = sum(bool(_LINE_OF_LIST.match(line)) for line in lines) > 1
    for line in lines:
        is_entry = has_list and bool(_LINE_OF_LIST.match(line))
        for sentence in sentences(line):
            for clause in _CLAUSE.split(sentence):
                if _names(clause, forms):
                    yield "" if is_entry or sentence.rstrip().endswith("?") else clause


def _names(text: str, forms: Sequence[Sequence[str]]) -> bool:
    terms = english(text)
    return any(terms[start : start + len(form)] == form for form in forms for start in range(len(terms)))


def _is_stated(clause: str, forms: Sequence[Sequence[str]]) -> bool:
    """Return True if a clause states the answer that it names."""
    if not clause or _NOT_ASSERTED.search(clause):
        return False
    parts = re.split(r",|\band\b", clause)
    return len(parts) == 1 or all(_STATES.search(part) for part in parts if english(part) in forms)
