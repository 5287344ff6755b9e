"""What judges are asked: the prompt, the form of the answer, and the grade that follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from r2med.data.overlays import Aspect
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import refuse_device
from r2med.models.ask.answers import LLMAnswer, Text, one_of, score
from r2med.models.prompts.templates import Template

HIGHEST = 3
"""The highest grade of the rubric of relevance."""
RELEVANT = 2
"""The lowest grade of the rubric that makes a passage relevant."""

SUPPORTS, OTHER, NEITHER = "supports", "other", "neither"


class RelevanceGrade(LLMAnswer):
    """The grade of a passage. The reason comes first, so that the grade follows from it."""

    why: Text
    grade: Annotated[int, score(HIGHEST)]


class Stance(LLMAnswer):
    """The answer that a passage argues for."""

    why: Text
    stance: Annotated[str, one_of(SUPPORTS, OTHER, NEITHER)]


@dataclass(frozen=True)
class Rubric:
    """A question to judges. What a judge says is a word of `scale`."""

    aspect: Aspect
    answer: type[LLMAnswer]
    said: Callable[[Any], str]
    """Answer -> word of the scale."""
    scale: tuple[str, ...]
    """What a judge can say."""
    positive: frozenset[str]
    """The words that count as yes: relevant, or arguing for another answer."""

    def template(self, file: Path | None = None) -> Template:
        """Return the prompt: that of the user's file, or ours. Raises UserError if the file cannot be read."""
        if file is None:
            own = files("r2med.assessment.judgements") / "prompts" / f"{self.aspect}.txt"
            return Template(str(own), own.read_text("utf-8"))
        refuse_device(file)
        try:
            text = file.read_text("utf-8")
        except OSError as error:
            raise UserError(f"{file}: this prompt cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise UserError(f"{file}: this prompt is not a text in UTF-8: save it as UTF-8") from None
        if missing := [field for field in ("{query}", "{text}") if field not in text]:
            raise UserError(f"{file}: a prompt of a judge needs the field {missing[0]}")
        return Template(str(file), text)

    @property
    def guideline(self) -> str:
        """What the scale means, in the words of our prompt, as a guideline for people: paragraphs and a list."""
        rules = self.template().text.partition("\n\nQuestion:")[0].split("\n\n")[1:]
        return "\n\n".join("\n".join(self._guideline_line(line) for line in rule.split("\n")) for rule in rules)

    def _guideline_line(self, line: str) -> str:
        word, _, meaning = line.partition(": ")
        return f"- **{word}**: {meaning}" if word in self.scale else line


RUBRICS: Mapping[Aspect, Rubric] = {
    "relevance": Rubric(
        "relevance",
        RelevanceGrade,
        lambda answer: str(answer.grade),
        tuple(map(str, range(HIGHEST + 1))),
        frozenset(map(str, range(RELEVANT, HIGHEST + 1))),
    ),
    "mimic": Rubric("mimic", Stance, lambda answer: str(answer.stance), (SUPPORTS, NEITHER, OTHER), frozenset([OTHER])),
}
"""Aspect -> what judges are asked."""


def grade_of(rubric: Rubric, said: str, highest: int) -> int:
    """Return the grade of a label on the scale of a dataset whose highest grade is `highest`.

    With grades 0 and 1, a passage is relevant from 2 of the rubric on. With three grades, 2 and 3 become 1 and 2. With
    more grades, those of the rubric are used as they are.
    """
    if rubric.aspect == "mimic" or highest <= 1:
        return int(said in rubric.positive)
    return max(0, int(said) - 1) if highest == RELEVANT else int(said)


def highest_grade(grades: Mapping[str, Mapping[str, int]]) -> int:
    """Return the highest grade of judgements."""
    return max((grade for documents in grades.values() for grade in documents.values()), default=1)


def shielded(text: str) -> str:
    """Return the text of a passage so that it cannot end its own frame in the prompt."""
    return text.replace(">>>", "»").replace("<<<", "«")


def said_numbers(rubric: Rubric, said: Sequence[str]) -> list[float]:
    """Return the places of words on the scale, for coefficients of agreement."""
    return [float(rubric.scale.index(word)) for word in said]
