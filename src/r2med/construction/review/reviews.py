"""Reviews of candidates by people: one review per person and candidate, and one decision per candidate."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from typing import Literal, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from r2med.measure.scores import Floats

Verdict = Literal["accept", "reject", "unsure"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

VERDICT_VALUES: dict[Verdict, float] = {"reject": 0.0, "unsure": 1.0, "accept": 2.0}
"""Verdicts as ordered numbers, for coefficients of agreement."""

Pair = tuple[str, str]
"""The ids of a question and a chunk."""


class Review(BaseModel):
    """The verdict of one person on one candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    """The id of the question."""
    chunk: str
    """The id of the passage."""
    annotator: str = Field(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$")
    """The name of the person."""
    verdict: Verdict
    """The decision of the person."""
    comment: str = Field("", max_length=5000)
    """A remark of the person."""
    adjudicated: bool = False
    """True if the person saw the reviews of others. Such a review settles their disagreement."""
    at: str = ""
    """Date and time in UTC."""
    item: str = ""
    """Digest of the shown query, answer and text. A review does not count for any other text."""

    @property
    def pair(self) -> Pair:
        """Ids of the candidate's question and chunk."""
        return self.question, self.chunk


def by_candidate(reviews: Iterable[Review]) -> dict[Pair, list[Review]]:
    """Return the reviews of each candidate, including adjudications."""
    grouped: dict[Pair, list[Review]] = {}
    for review in reviews:
        grouped.setdefault(review.pair, []).append(review)
    return grouped


def decision(reviews: Iterable[Review]) -> tuple[Verdict | None, bool]:
    """Return the decision of people about one candidate, and True if it was adjudicated.

    The last adjudication counts. Without one, the majority of those who are sure decides. A tie is "unsure", and the
    decision is None if all are unsure.
    """
    given = list(reviews)
    settled = [review.verdict for review in given if review.adjudicated]
    if settled:
        return settled[-1], True
    votes = Counter(review.verdict for review in given)
    if not votes["accept"] + votes["reject"]:
        return None, False
    if votes["accept"] == votes["reject"]:
        return "unsure", False
    return ("accept" if votes["accept"] > votes["reject"] else "reject"), False


def is_disputed(reviews: Iterable[Review]) -> bool:
    """Return True if people disagree about one candidate and the disagreement is not settled."""
    given = list(reviews)
    return len({review.verdict for review in given}) > 1 and not any(review.adjudicated for review in given)


def rating_table(reviews: Iterable[Review]) -> tuple[list[Pair], list[str], Floats]:
    """Return candidates, annotators, and their verdicts by `VERDICT_VALUES` as candidates × annotators.

    A missing review is NaN. Adjudications are left out, since their authors had seen the verdicts of others.
    """
    own = [review for review in reviews if not review.adjudicated]
    pairs = sorted({review.pair for review in own})
    annotators = sorted({review.annotator for review in own})
    rows = dict(zip(pairs, itertools.count(), strict=False))
    columns = dict(zip(annotators, itertools.count(), strict=False))
    table = np.full((len(pairs), len(annotators)), np.nan)
    for review in own:
        table[rows[review.pair], columns[review.annotator]] = VERDICT_VALUES[review.verdict]
    return pairs, annotators, table
