"""Rubrics: cards that say what is asked about an item, in which words it is answered, and which words mean yes.

LLMs are asked with the rubric's prompt, people on the review page. A new kind of judgement is a new card.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, create_model, model_validator

from r2med.assessment.rubrics.item import Item, ItemId
from r2med.foundation.core.errors import UserError, checked_name
from r2med.foundation.core.names import Catalogue
from r2med.foundation.store.files import refuse_device
from r2med.models.ask.answers import LLMAnswer, Text, number_up_to, word_of
from r2med.models.prompts.templates import Template

Verdict = Literal["accept", "reject", "unsure"]
"""What a word means on the review page. It decides the colour of its button, and what happens to the item."""

WHY = "why"
"""The field of an LLM's answer with its reason."""


class _RubricPart(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Word(_RubricPart):
    """One of the answers to a point."""

    word: str
    """The answer in files, and in the answer of an LLM."""
    label: str = ""
    """The answer on its button. By default the word itself."""
    key: str = Field("", max_length=1)
    """The key that gives the answer on the review page. By default its place on the scale, from 0."""
    means: str = ""
    """When to give this answer, in one sentence."""
    yes: bool = False
    """True if the word counts as yes."""
    sure: bool = True
    """False if the word says that the rater cannot decide. Such ratings have no vote."""
    verdict: Verdict | None = None
    """By default accept for yes, unsure for a word that is not sure, and reject for all others."""

    @property
    def shown(self) -> str:
        """The answer on its button."""
        return self.label or self.word.capitalize()

    @property
    def decides(self) -> Verdict:
        """The verdict that follows from the answer."""
        return self.verdict or ("accept" if self.yes else "reject" if self.sure else "unsure")


YES_NO = (
    Word(word="no", key="r"),
    Word(word="unsure", key="u", sure=False),
    Word(word="yes", key="a", yes=True),
)
"""The usual answers, from no to yes."""

VERDICT = "verdict"
"""Name of the only point of a rubric that is answered by a verdict: accept, unsure or reject."""


class Point(_RubricPart):
    """One question about an item, which is answered by one of the rubric's words."""

    name: str
    """The field of the answer: in files, and in the answer of an LLM."""
    text: str = ""
    """The question as people read it."""
    rejects: str = ""
    """Reason for leaving out an item for which most people answer no. Empty if no answer leaves anything out."""
    publishes: bool = False
    """True if the answer becomes a column of the query, with the name of the point."""


class RatedText(_RubricPart):
    """A text of an item."""

    field: str
    """Its name in items and in the prompt."""
    label: str
    """Its heading on the review page."""
    rated: bool = False
    """True if the text itself is rated. The others are what it is compared with."""
    required: bool = False
    """True if something without this text is no item of the rubric."""
    corrects: bool = False
    """True if people can write a corrected version of the text."""
    folds: bool = False
    """True if the text is folded on small screens."""
    absent: str = "(empty)"
    """What a prompt shows if the item does not have the text."""


class Rubric(_RubricPart):
    """A question about items of one kind."""

    name: str
    """Name of the rubric: that of its file."""
    noun: str
    """An item, in a sentence."""
    task: str
    """What a rater is asked to do, in one sentence."""
    texts: tuple[RatedText, ...] = Field(min_length=1)
    points: tuple[Point, ...] = Field(min_length=1)
    words: tuple[Word, ...] = Field(YES_NO, min_length=2)
    """The answers to each point, from the lowest to the highest. Coefficients of agreement use their places."""
    rules: str = ""
    """What else a rater heeds. Both LLMs and people read it."""
    prompt: str = ""
    """What an LLM is asked, with a field for each text in braces, and {words} and {rules}. Empty: only people rate."""
    controls: Mapping[str, bool] = {}
    """Kind of planted control -> True if the right answer is yes."""

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        for words, what in (
            ([each.word for each in self.words], "word"),
            ([each.key for each in self.words if each.key], "key of a word"),
            ([each.name for each in self.points], "point"),
            ([each.field for each in self.texts], "text"),
        ):
            if repeated := [each for each in words if words.count(each) > 1]:
                raise ValueError(f"the {what} {repeated[0]!r} is there twice")
        if not any(each.rated for each in self.texts):
            raise ValueError("no text is rated: give one of them rated = true")
        sides = [each.yes for each in self.words if each.sure]
        if sum(first != second for first, second in pairwise(sides)) > 1:
            raise ValueError("words run from the lowest to the highest: those that mean yes are together at one end")
        if wrong := [each.field for each in self.texts if each.corrects and not each.rated]:
            raise ValueError(f"only a text that is rated can be corrected, and {wrong[0]!r} is not")
        if len([each for each in self.texts if each.corrects]) > 1:
            raise ValueError("several texts have corrects = true: people correct one text of an item")
        if self.prompt:
            self._check_prompt()
        return self

    def _check_prompt(self) -> None:
        if missing := [each.field for each in self.texts if each.rated and f"{{{each.field}}}" not in self.prompt]:
            raise ValueError(f"the prompt has no field {{{missing[0]}}}, so the LLM does not see what it rates")
        if not any(word.yes for word in self.words):
            raise ValueError("no word means yes: give one of them yes = true")

    @property
    def beside(self) -> tuple[RatedText, ...]:
        """Texts that the item is compared with."""
        return tuple(each for each in self.texts if not each.rated)

    @property
    def main(self) -> tuple[RatedText, ...]:
        """Texts that are rated."""
        return tuple(each for each in self.texts if each.rated)

    @property
    def has_several_points(self) -> bool:
        """True if a rating has an answer to each of several points."""
        return len(self.points) > 1

    @property
    def corrected(self) -> RatedText | None:
        """The text that people can correct; None if they cannot correct any."""
        return next((each for each in self.texts if each.corrects), None)

    @property
    def has_verdict(self) -> bool:
        """True if the only answer is a verdict, which files write as accept, unsure or reject."""
        return [point.name for point in self.points] == [VERDICT]

    def verdict(self, answers: Mapping[str, str]) -> Verdict:
        """Return what follows from answers: one no is enough. If some points have `rejects`, only those decide."""
        deciding = [point for point in self.points if point.rejects] or self.points
        words = [answers[point.name] for point in deciding if answers.get(point.name) in self.by_word]
        verdicts = [self.by_word[word].decides for word in words]
        return "reject" if "reject" in verdicts else "unsure" if "unsure" in verdicts else "accept"

    def item(self, id_: ItemId, texts: Mapping[str, str], **more: Any) -> Item | None:
        """Return the item of these texts; None if a text is missing that the rubric requires."""
        if not all(texts.get(each.field) for each in self.texts if each.required or each.rated):
            return None
        return Item(id_, {each.field: texts.get(each.field, "") for each in self.texts}, self.name, **more)

    @cached_property
    def by_word(self) -> Mapping[str, Word]:
        """Word in files -> the word with its meaning."""
        return {each.word: each for each in self.words}

    def word_of(self, verdict: Verdict) -> str | None:
        """Return the first word that leads to a verdict; None if no word does."""
        return next((each.word for each in self.words if each.decides == verdict), None)

    def place(self, word: str) -> int:
        """Return the place of a word on the scale, from 0, for coefficients of agreement."""
        return next(place for place, each in enumerate(self.words) if each.word == word)

    def says_yes(self, answers: Mapping[str, str]) -> bool:
        """Return True if the answer to every point means yes."""
        return all(self.by_word[word].yes for word in answers.values())

    def grade(self, word: str, highest: int) -> int:
        """Return the grade of a label on the scale of a dataset whose highest grade is `highest`.

        With grades 0 and 1, or with words that are no grades, yes is 1. With three grades, 2 and 3 become 1 and 2. With
        more grades, those of the rubric are used as they are.
        """
        if highest <= 1 or not self._has_grades:
            return int(self.by_word[word].yes)
        return max(0, int(word) - 1) if highest == _THREE_GRADES else int(word)

    @property
    def _has_grades(self) -> bool:
        return [each.word for each in self.words] == [*map(str, range(len(self.words)))]

    # What LLMs are asked.

    def template(self, file: Path | str | None = None) -> Template:
        """Return the prompt: that of the user's file, or that of the rubric. Raises UserError if it cannot be used."""
        text = self.prompt if file is None else _own_prompt(Path(file), self)
        if not text:
            raise UserError(f"the rubric {self.name} has no prompt, so only people can rate by it")
        lines = "\n".join(f"{each.word}: {each.means}" for each in self._from_best)
        return Template(
            self.name if file is None else str(file), text.replace("{words}", lines).replace("{rules}", self.rules)
        )

    @property
    def _from_best(self) -> tuple[Word, ...]:
        return tuple(each for each in reversed(self.words) if each.means)

    @cached_property
    def answer(self) -> type[LLMAnswer]:
        """The model of an LLM's answer. The reason comes first, so that the words follow from it."""
        reader = number_up_to(len(self.words) - 1) if self._has_grades else _word_reader(tuple(self.by_word))
        kind: Any = int if self._has_grades else str
        points = {point.name: (Annotated[kind, reader], ...) for point in self.points}
        return create_model("RubricAnswer", __base__=LLMAnswer, **{WHY: (Text, ...)}, **points)  # type: ignore[call-overload,no-any-return]

    def read(self, answer: LLMAnswer) -> dict[str, str]:
        """Return the word for each point from an LLM's answer."""
        return {point.name: str(getattr(answer, point.name)) for point in self.points}

    # What people read.

    @property
    def guideline(self) -> str:
        """What the words mean, as a guideline for people: paragraphs and a list."""
        words = "\n".join(f"- **{each.shown}**: {each.means}" for each in self._from_best)
        return "\n\n".join(filter(None, (self.task, words, self.rules)))


_THREE_GRADES = 2
"""The highest grade of a dataset with three grades."""


def _word_reader(words: tuple[str, ...]) -> Any:
    """Return the reader of a field that holds one of these words. JSON's true and false are yes and no."""
    truths = {True: "yes", False: "no"}

    def read(value: Any) -> Any:
        return word_of(truths[value] if isinstance(value, bool) else value, words)

    return BeforeValidator(read, json_schema_input_type=Literal[words])


def _own_prompt(file: Path, rubric: Rubric) -> str:
    refuse_device(file)
    try:
        text = file.read_text("utf-8")
    except OSError as error:
        raise UserError(f"{file}: this prompt cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise UserError(f"{file}: this prompt is not a text in UTF-8: save it as UTF-8") from None
    if missing := [each.field for each in rubric.texts if f"{{{each.field}}}" not in text and each.field != "answer"]:
        raise UserError(f"{file}: a prompt of a judge needs the field {{{missing[0]}}}")
    return text


def highest_grade(grades: Mapping[str, Mapping[str, int]]) -> int:
    """Return the highest grade of judgements."""
    return max((grade for documents in grades.values() for grade in documents.values()), default=1)


RUBRICS = Catalogue("rubrics", Rubric, "rubric", "r2med list rubrics shows all")


def find_rubric(name: str) -> Rubric:
    """Return the rubric of a name, or of the user's own TOML file. Raises UserError if there is none."""
    path = Path(name)
    if path.suffix != ".toml":
        return RUBRICS.card(name)
    refuse_device(path)
    try:
        return RUBRICS.read_file(path, checked_name(path.stem, "rubric"))
    except OSError as error:
        raise UserError(f"{path}: this rubric cannot be read ({error.strerror})") from None
