"""Leave out questions that contain their answer, by its own name, a known synonym or a name that an LLM lists."""

from __future__ import annotations

from collections.abc import Mapping

from r2med.construction.items import Rejected, SourceQuestion
from r2med.construction.steps.asking import AskingQuestions
from r2med.foundation.text.named import named_in
from r2med.models.ask.answers import LLMAnswer, Texts

LEAKS = "Answer Leaks"


class OtherNames(LLMAnswer):
    """Other names of the answer, listed by the LLM."""

    names: Texts


class CheckLeaks(AskingQuestions, kind="build", takes="llm"):
    """Leave out questions that contain their answer. A rule finds its name, and an LLM lists its other names."""

    template = "check-leaks"
    answer = OtherNames

    name: str = "check-leaks"

    def settled(self, item: SourceQuestion) -> SourceQuestion | Rejected | None:
        """Return a question that names its answer or a known synonym as rejected, and one without answer as it is."""
        if leaked := named_in(item.text, [item.answer, *item.other_names]):
            return Rejected.of(item, LEAKS, leaked)
        return None if item.answer else item

    def fields(self, item: SourceQuestion) -> Mapping[str, str]:
        """Return only the answer, since its other names do not depend on the question."""
        return {"answer": item.answer}

    def read(self, item: SourceQuestion, answer: OtherNames) -> SourceQuestion | Rejected:
        """Return the question, or reject it with the name that it contains."""
        leaked = named_in(item.text, answer.names)
        return Rejected.of(item, LEAKS, leaked) if leaked else item
