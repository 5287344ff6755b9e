"""Whether a question gives its answer away: under its own name, or under another that an LLM knows."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from r2med.ask.answers import LLMAnswer, Texts
from r2med.construction.items import Question, Rejected
from r2med.construction.steps.asking import AskingQuestions
from r2med.text.english import english

LEAKS = "Answer Leaks"
_WORD = re.compile(r"\w+")


class OtherNames(LLMAnswer):
    """Other names of the answer."""

    names: Texts


class CheckLeaks(AskingQuestions, kind="build", needs="llm"):
    """Leave out questions in which their answer stands: its name by a rule, its other names as an LLM lists them."""

    template = "check-leaks"
    answer = OtherNames

    name: str = "check-leaks"

    def settled(self, item: Question) -> Question | Rejected | None:
        """Return a question that names its answer as left out, one without an answer as it is."""
        if leaked := named_in(item.text, [item.answer]):
            return Rejected.of(item, LEAKS, leaked)
        return None if item.answer else item

    def fields(self, item: Question) -> Mapping[str, str]:
        """Return the answer alone: what the question says has no part in its names."""
        return {"answer": item.answer}

    def read(self, item: Question, answer: OtherNames) -> Question | Rejected:
        """Return the question, or as left out with the name that stands in it."""
        leaked = named_in(item.text, answer.names)
        return Rejected.of(item, LEAKS, leaked) if leaked else item


def named_in(text: str, names: Iterable[str]) -> str:
    """Return the first of some names that a text has as whole words; empty if it has none.

    Case, hyphens, endings and small words make no difference, except that a short abbreviation must stand in
    capitals: "all" is not ALL.
    """
    there = _stems(text)
    words = set(_WORD.findall(text))
    for name in map(str.strip, names):
        is_abbreviation = len(name) <= 5 and name.isupper()
        if name in words if is_abbreviation else _stems(name).strip() and _stems(name) in there:
            return name
    return ""


def _stems(text: str) -> str:
    return f" {' '.join(english(text))} "
