"""Reviews by people: one review per person and item, one decision per item and point.

An item of kind `passage` is a candidate. Items of other kinds are texts of a question that an LLM wrote or changed.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Self, cast, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from r2med.assessment.review.review_kinds import ONLY_POINT, PASSAGE, REVIEW_KINDS, Verdict, YesNo
from r2med.evaluation.measure.scores import Floats
from r2med.foundation.core.errors import unknown

VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

VERDICT_REPLIES: Mapping[Verdict, YesNo] = {"accept": "yes", "unsure": "unsure", "reject": "no"}
"""Verdict -> the same as an answer to the only point of a kind."""
_REPLY_VERDICTS: Mapping[YesNo, Verdict] = {reply: verdict for verdict, reply in VERDICT_REPLIES.items()}

Pair = tuple[str, str]
"""The ids of a question and a chunk. The second is empty for items that have no chunk."""


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
    """The decision of the person. With several points it follows from the answers."""
    comment: str = Field("", max_length=5000)
    """A remark of the person."""
    adjudicated: bool = False
    """True if the person saw the reviews of others. Such a review settles their disagreement."""
    at: str = ""
    """Date and time in UTC."""
    item: str = ""
    """Digest of the shown texts. A review does not count for any other text."""
    kind: str = PASSAGE
    """What is reviewed: passage, question, answer, reasoning, translation or page; relevance or mimic; or nugget."""
    answers: dict[str, str] = {}
    """The answer to each point, such as answerable, in words of the kind's scale. Empty for kinds with a verdict."""

    @model_validator(mode="before")
    @classmethod
    def _with_verdict(cls, fields: Any) -> Any:
        """Add the verdict that follows from the answers."""
        if not isinstance(fields, dict) or not isinstance(answers := fields.get("answers"), Mapping) or not answers:
            return fields
        return {**fields, "verdict": _verdict_of(fields.get("kind", PASSAGE), answers)}

    @model_validator(mode="after")
    def _answers_belong_to_the_kind(self) -> Self:
        if self.kind not in REVIEW_KINDS:
            raise ValueError(str(unknown("kind of review item", self.kind, REVIEW_KINDS)))
        kind = REVIEW_KINDS[self.kind]
        wanted = {point.name for point in kind.points} if kind.has_answers else set()
        if set(self.answers) != wanted:
            raise ValueError(
                f"a review of kind {self.kind} answers {', '.join(sorted(wanted)) or 'nothing but verdict'}"
            )
        words = [word.word for word in kind.scale]
        if wrong := [f"{point}={said!r}" for point, said in self.answers.items() if said not in words]:
            raise ValueError(f"{wrong[0]} is wrong: an answer is {', '.join(words[:-1])} or {words[-1]}")
        if bool(self.chunk) != kind.has_passage:
            raise ValueError("a review has a chunk if a passage is reviewed, and no chunk otherwise")
        return self

    @property
    def pair(self) -> Pair:
        """Ids of the candidate's question and chunk."""
        return self.question, self.chunk

    @property
    def replies(self) -> Mapping[str, str]:
        """The answer to each point of the kind. The only point of a kind has the name `verdict`."""
        return self.answers or {ONLY_POINT: VERDICT_REPLIES[self.verdict]}

    @property
    def written(self) -> dict[str, str]:
        """The answer to each point, or the verdict on the only point, in the words of files."""
        return {**self.answers} if self.answers else {ONLY_POINT: self.verdict}


def _verdict_of(kind: Any, answers: Mapping[str, Any]) -> Verdict:
    """Return the verdict of the only answer. With several, reject if a point that rejects is answered no, and so on."""
    known = REVIEW_KINDS.get(kind)
    points = known.points if known else ()
    if known and not known.has_several_points:
        verdicts = {word.word: word.verdict for word in known.scale}
        return verdicts.get(answers.get(points[0].name, ""), "unsure")
    replies = {answers.get(point.name) for point in points if point.rejects}
    return "reject" if "no" in replies else "unsure" if "unsure" in replies else "accept"


def by_candidate(reviews: Iterable[Review], kind: str = PASSAGE) -> dict[Pair, list[Review]]:
    """Return the reviews of each candidate, or of each item of another kind, including adjudications."""
    grouped: dict[Pair, list[Review]] = {}
    for review in reviews:
        if review.kind == kind:
            grouped.setdefault(review.pair, []).append(review)
    return grouped


def decision(reviews: Iterable[Review]) -> tuple[Verdict | None, bool]:
    """Return the decision of people about one candidate, and True if it was adjudicated."""
    reply, settled = decided_reply(reviews)
    return (None if reply is None else _REPLY_VERDICTS[reply]), settled


def decided_reply(reviews: Iterable[Review], point: str = ONLY_POINT) -> tuple[YesNo | None, bool]:
    """Return the decision of people about one point of one item, and True if it was adjudicated.

    The last adjudication counts. Without one, the majority of those who are sure decides. A tie is "unsure", and the
    decision is None if all are unsure.
    """
    given = list(reviews)
    settled = [review.replies[point] for review in given if review.adjudicated]
    if settled:
        return cast(YesNo, settled[-1]), True
    votes = Counter(review.replies[point] for review in given)
    if not votes["yes"] + votes["no"]:
        return None, False
    if votes["yes"] == votes["no"]:
        return "unsure", False
    return ("yes" if votes["yes"] > votes["no"] else "no"), False


def is_unsettled(reviews: Iterable[Review]) -> bool:
    """Return True if people reviewed an item without a decision: as many accept as reject it, or nobody is sure."""
    given = list(reviews)
    votes = Counter(review.verdict for review in given)
    return bool(given) and votes["accept"] == votes["reject"] and not any(review.adjudicated for review in given)


def is_disputed(reviews: Iterable[Review]) -> bool:
    """Return True if people disagree about a point of one item and the disagreement is not settled."""
    given = list(reviews)
    opinions = {tuple(sorted(review.replies.items())) for review in given}
    return len(opinions) > 1 and not any(review.adjudicated for review in given)


def rating_table(
    reviews: Iterable[Review], kind: str = PASSAGE, point: str = ONLY_POINT
) -> tuple[list[Pair], list[str], Floats]:
    """Return items of a kind, annotators, and their answers to a point as items × annotators.

    An answer is its place in the scale, from 0. A missing review is NaN. Adjudications are left out, since their
    authors had seen the verdicts of others.
    """
    own = [review for review in reviews if review.kind == kind and not review.adjudicated]
    pairs = sorted({review.pair for review in own})
    annotators = sorted({review.annotator for review in own})
    rows = dict(zip(pairs, itertools.count(), strict=False))
    columns = dict(zip(annotators, itertools.count(), strict=False))
    table = np.full((len(pairs), len(annotators)), np.nan)
    values = {word.word: place for place, word in enumerate(REVIEW_KINDS[kind].scale)}
    for review in own:
        table[rows[review.pair], columns[review.annotator]] = values[review.replies[point]]
    return pairs, annotators, table
