"""The part of a datasheet about the people who reviewed: who they are, their guideline, and what they said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from r2med.assessment.review.review_outcomes import reply_counts
from r2med.assessment.review.reviews import Review
from r2med.evaluation.measure.intervals import wilson
from r2med.foundation.pages.cells import Column, Estimate
from r2med.foundation.pages.page import Content, Table, Verbatim
from r2med.foundation.text.plurals import counted

MIN_ANSWERS = 10
"""Smallest number of answers for an interval, as for shares of labels."""


def reviewers(words: str, guideline: str, reviews: Sequence[Review]) -> Iterator[Content]:
    """Yield the number of reviewers, what the author says about them, the guideline, and their answers.

    There are no names. `words` are the author's.
    """
    yield f"{counted(len({review.annotator for review in reviews}), 'person', 'people')} reviewed."
    yield words or "The author says nothing about who they are."
    if guideline:
        yield Verbatim("Guideline of the reviewers", guideline)
    else:
        yield "The reviewers had no written guideline of the project."
    yield from _answers(reviews)


def _answers(reviews: Iterable[Review]) -> Iterator[Content]:
    """Yield what people decided about questions and their texts."""
    rows = [
        (point.text, _share(counts["yes"], counts["no"]), counts["yes"], counts["no"], counts["unsure"])
        for point, counts in reply_counts(reviews).items()
    ]
    if rows:
        counts = (Column(head, "integer") for head in ("yes", "no", "no majority"))
        columns = (Column("asked"), Column("share of yes", "share", 0), *counts)
        note = (
            "Each text counts once, by its settled answer or the majority of those who are sure. The share is of yes "
            "and no, with a 95 % interval from 10 texts on. It holds for all texts if the reviewed ones were drawn at "
            "random."
        )
        yield Table(columns, rows, "What people said about questions and texts", note)


def _share(yes: int, no: int) -> Estimate | None:
    """Return the share of yes, with Wilson's interval if there are enough answers."""
    if not yes + no:
        return None
    value, size = yes / (yes + no), yes + no
    low, high = wilson(np.array(value), np.array(float(size))).tolist() if size >= MIN_ANSWERS else (None, None)
    return Estimate(value, low, high)
