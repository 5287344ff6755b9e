"""What people say of candidates: one review a person and candidate, and one decision where they disagreed."""

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

SCALE: dict[Verdict, float] = {"reject": 0.0, "unsure": 1.0, "accept": 2.0}
"""Verdicts as numbers, in their order: for coefficients of agreement."""

Pair = tuple[str, str]
"""The ids of a question and a chunk."""


class Review(BaseModel):
    """What one person says of one candidate."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    chunk: str
    annotator: str = Field(min_length=1, max_length=60, pattern=r"^\S(.*\S)?$")
    verdict: Verdict
    comment: str = Field("", max_length=5000)
    adjudicated: bool = False
    """True if it was made with the reviews of others in view: it settles what they disagreed about."""
    at: str = ""
    """When, in UTC."""
    item: str = ""
    """What was shown: a digest of query, answer and text. A review of another text is none of this one."""

    @property
    def pair(self) -> Pair:
        """The candidate."""
        return self.question, self.chunk


def by_candidate(reviews: Iterable[Review]) -> dict[Pair, list[Review]]:
    """Return each candidate's reviews, adjudications among them."""
    grouped: dict[Pair, list[Review]] = {}
    for review in reviews:
        grouped.setdefault(review.pair, []).append(review)
    return grouped


def decision(reviews: Iterable[Review]) -> tuple[Verdict | None, bool]:
    """Return what people decided about one candidate, and whether it was adjudicated.

    The last adjudication counts; without one the majority of those who are sure. Where these are as many on both sides
    it is unsure, where nobody is sure it is None.
    """
    told = list(reviews)
    settled = [review.verdict for review in told if review.adjudicated]
    if settled:
        return settled[-1], True
    votes = Counter(review.verdict for review in told)
    if not votes["accept"] + votes["reject"]:
        return None, False
    if votes["accept"] == votes["reject"]:
        return "unsure", False
    return ("accept" if votes["accept"] > votes["reject"] else "reject"), False


def is_disputed(reviews: Iterable[Review]) -> bool:
    """Return whether people disagree about one candidate, and nobody has settled it."""
    told = list(reviews)
    return len({review.verdict for review in told}) > 1 and not any(review.adjudicated for review in told)


def rating_table(reviews: Iterable[Review]) -> tuple[list[Pair], list[str], Floats]:
    """Return candidates, annotators, and candidates × annotators by `SCALE`, NaN where one did not review.

    Adjudications are left out: who made one knew what others had said.
    """
    own = [review for review in reviews if not review.adjudicated]
    pairs = sorted({review.pair for review in own})
    annotators = sorted({review.annotator for review in own})
    rows = dict(zip(pairs, itertools.count(), strict=False))
    columns = dict(zip(annotators, itertools.count(), strict=False))
    table = np.full((len(pairs), len(annotators)), np.nan)
    for review in own:
        table[rows[review.pair], columns[review.annotator]] = SCALE[review.verdict]
    return pairs, annotators, table
