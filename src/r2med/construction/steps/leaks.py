"""Leave out questions that contain their answer, by its own name or by another name that an LLM lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from r2med.ask.answers import LLMAnswer, Texts
from r2med.construction.items import Rejected, SourceQuestion
from r2med.construction.steps.asking import AskingQuestions
from r2med.text.english import english

LEAKS = "Answer Leaks"
_WORD = re.compile(r"\w+")


class OtherNames(LLMAnswer):
    """Other names of the answer, listed by the LLM."""

    names: Texts


class CheckLeaks(AskingQuestions, kind="build", needs="llm"):
    """Leave out questions that contain their answer. A rule finds its name, and an LLM lists its other names."""

    template = "check-leaks"
    answer = OtherNames

    name: str = "check-leaks"

    def settled(self, item: SourceQuestion) -> SourceQuestion | Rejected | None:
        """Return a question that names its answer as rejected, and a question without an answer as it is."""
        if leaked := named_in(item.text, [item.answer]):
            return Rejected.of(item, LEAKS, leaked)
        return None if item.answer else item

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return only the answer, since its other names do not depend on the question."""
        return {"answer": item.answer}

    def read(self, item: SourceQuestion, answer: OtherNames) -> SourceQuestion | Rejected:
        """Return the question, or reject it with the name that it contains."""
        leaked = named_in(item.text, answer.names)
        return Rejected.of(item, LEAKS, leaked) if leaked else item


def named_in(text: str, names: Iterable[str]) -> str:
    """Return the first name that a text contains as whole words; empty if it contains none.

    Case, hyphens, endings and stop words are ignored, except that a short abbreviation must be in capitals: "all" is
    not ALL.
    """
    stems = _stems(text)
    words = set(_WORD.findall(text))
    for name in map(str.strip, names):
        is_abbreviation = len(name) <= 5 and name.isupper()
        if name in words if is_abbreviation else _stems(name).strip() and _stems(name) in stems:
            return name
    return ""


def _stems(text: str) -> str:
    return f" {' '.join(english(text))} "
