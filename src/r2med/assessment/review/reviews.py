"""Reviews by people: one review per person and item, one decision per item and point.

What is asked about an item is a rubric, and the kind of a review is the name of its rubric.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, get_args

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationInfo, model_validator

from r2med.assessment.panels.ratings import Ratings
from r2med.assessment.review.kinds import KINDS, PASSAGE
from r2med.assessment.rubrics.rubric import RUBRICS, VERDICT, Rubric, Verdict
from r2med.data.overlays import decided
from r2med.foundation.core.errors import unknown

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

MAX_CORRECTION = 20_000
"""Most characters of a corrected text."""

Rubrics = Mapping[str, Rubric]
"""Rubrics by name: `RUBRICS`, or with one of the user's own."""

Pair = tuple[str, str]
"""The two parts of an item's id: a question and a chunk. The second is empty for items that have no chunk."""


class Review(BaseModel):
    """The verdict of one person on one item."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    """The id of the question. For a translated page, the id of the page."""
    chunk: str = ""
    """The id of the passage. Empty if a text of the question is reviewed."""
    annotator: str = Field(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$")
    """The name of the person."""
    verdict: Verdict
    """The decision of the person. It follows from the answers."""
    comment: str = Field("", max_length=5000)
    """A remark of the person."""
    adjudicated: bool = False
    """True if the person saw the reviews of others. Such a review settles their disagreement."""
    at: str = ""
    """Date and time in UTC."""
    item: str = ""
    """Digest of the shown texts. A review does not count for any other text."""
    kind: str = PASSAGE
    """The rubric: passage, question, answer, reasoning, translation or page; relevance; nugget; or an own."""
    answers: dict[str, str] = {}
    """The answer to each point of the rubric, such as answerable. If there is a verdict only, it follows from that."""
    correction: str = Field("", max_length=MAX_CORRECTION)
    """The text as the person corrects it, if the rubric allows it. The answers are about the corrected text then."""

    _rubric: Rubric = PrivateAttr()

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, fields: Any, info: ValidationInfo) -> Any:
        """Add the verdict that follows from the answers, or the answer that follows from a verdict."""
        if not isinstance(fields, dict) or not (rubric := _rubrics(info).get(fields.get("kind", PASSAGE))):
            return fields
        answers = fields.get("answers") or {}
        if isinstance(answers, Mapping) and answers:
            return {**fields, "verdict": rubric.verdict(answers)}
        if rubric.has_verdict and (word := rubric.word_of(fields.get("verdict", ""))):
            return {**fields, "answers": {VERDICT: word}}
        return fields

    @model_validator(mode="after")
    def _fits_the_rubric(self, info: ValidationInfo) -> Self:
        rubrics = _rubrics(info)
        if self.kind not in rubrics:
            raise ValueError(str(unknown("kind of review item", self.kind, rubrics)))
        self._rubric = rubric = rubrics[self.kind]
        if set(self.answers) != {point.name for point in rubric.points}:
            wanted = ", ".join(sorted(point.name for point in rubric.points))
            raise ValueError(f"a review of kind {self.kind} answers {wanted}")
        words = list(rubric.by_word)
        if wrong := [f"{point}={said!r}" for point, said in self.answers.items() if said not in words]:
            raise ValueError(f"{wrong[0]} is wrong: an answer is {', '.join(words[:-1])} or {words[-1]}")
        if self.correction and not rubric.corrected:
            raise ValueError(f"people cannot correct the text of a review of kind {self.kind}")
        return self

    @property
    def rubric(self) -> Rubric:
        """What was asked."""
        return self._rubric

    @property
    def pair(self) -> Pair:
        """The id of the item: the question and the chunk."""
        return self.question, self.chunk

    @property
    def opinion(self) -> tuple[Mapping[str, str], str]:
        """What people can agree or disagree about: the answers and the correction."""
        return self.answers, self.correction

    @property
    def written(self) -> dict[str, str]:
        """The answer to each point, or the verdict on the only point, in the words of files."""
        return {VERDICT: self.verdict} if self.rubric.has_verdict else {**self.answers}


def _rubrics(info: ValidationInfo) -> Rubrics:
    return info.context or RUBRICS


def by_candidate(reviews: Iterable[Review], kind: str = PASSAGE) -> dict[Pair, list[Review]]:
    """Return the reviews of each candidate, or of each item of another kind, including adjudications."""
    grouped: dict[Pair, list[Review]] = {}
    for review in reviews:
        if review.kind == kind:
            grouped.setdefault(review.pair, []).append(review)
    return grouped


def rubrics_of(reviews: Iterable[Review]) -> Rubrics:
    """Return the rubrics of reviews by name: those of `KINDS` in their order, then others by name."""
    found = {review.kind: review.rubric for review in reviews}
    return {name: found[name] for name in (*KINDS, *sorted({*found} - {*KINDS})) if name in found}


def decided_reply(reviews: Iterable[Review], point: str = VERDICT) -> tuple[str | None, bool]:
    """Return the word that people decide on for one point of one item, and True if it was adjudicated.

    The word is None if it is undecided. `decided` has the rule.
    """
    given = list(reviews)
    if not given:
        return None, False
    rubric = given[0].rubric
    settled = [rubric.place(each.answers[point]) for each in given if each.adjudicated]
    votes = [each.answers[point] for each in given if rubric.by_word[each.answers[point]].sure]
    place = decided(map(rubric.place, votes), lambda place: rubric.words[place].yes, settled)
    return None if place is None else rubric.words[place].word, bool(settled)


def decision(reviews: Iterable[Review]) -> tuple[Verdict | None, bool]:
    """Return the decision of people about one candidate, and True if it was adjudicated. None: it is undecided."""
    given = list(reviews)
    word, settled = decided_reply(given)
    return (None if word is None else given[0].rubric.by_word[word].decides), settled


def decided_correction(reviews: Iterable[Review]) -> str | None:
    """Return the corrected text that people decide on; empty if the original stays, None if it is undecided.

    A correction is accepted if the majority of those who are sure wrote the same text. `decided` has the rule.
    """
    given = list(reviews)
    settled = [each.correction for each in given if each.adjudicated]
    votes = [each.correction for each in given if each.verdict != "unsure"]
    for text in dict.fromkeys(each.correction for each in given):
        if decided([each == text for each in votes], bool, [each == text for each in settled]):
            return text
    return None if any(each.correction for each in given) else ""


def is_unsettled(reviews: Iterable[Review]) -> bool:
    """Return True if people reviewed an item and a point of it is undecided: a tie, or nobody is sure."""
    given = list(reviews)
    return bool(given) and any(decided_reply(given, point.name)[0] is None for point in given[0].rubric.points)


def is_disputed(reviews: Iterable[Review]) -> bool:
    """Return True if people disagree about a point or the text of one item and the disagreement is not settled."""
    given = list(reviews)
    opinions = {(*sorted(review.answers.items()), review.correction) for review in given}
    return len(opinions) > 1 and not any(review.adjudicated for review in given)


def ratings_of(reviews: Iterable[Review], rubric: Rubric, point: str = VERDICT) -> Ratings:
    """Return what people said about one point of the items of a rubric.

    Adjudications are left out, since their authors had seen the verdicts of others.
    """
    own = (review for review in reviews if review.kind == rubric.name and not review.adjudicated)
    return Ratings.of([*rubric.by_word], ((review.pair, review.annotator, review.answers[point]) for review in own))
