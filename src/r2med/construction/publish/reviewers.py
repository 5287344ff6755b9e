"""The part of a datasheet about the people who reviewed: their qualifications and guideline, and what they said."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median

import numpy as np

from r2med.assessment.review.annotators import Annotator
from r2med.assessment.review.review_outcomes import reply_counts
from r2med.assessment.review.reviews import Review
from r2med.evaluation.measure.intervals import wilson
from r2med.foundation.pages.cells import Column
from r2med.foundation.pages.estimate import Estimate
from r2med.foundation.pages.page import Content, Table, Verbatim

UNSTATED = "not stated"
MIN_ANSWERS = 10
"""Smallest number of answers for an interval, as for shares of labels."""


def reviewers(annotators: Sequence[Annotator], guideline: str, reviews: Iterable[Review]) -> Iterator[Content]:
    """Yield counts of reviewers by qualification, their years of experience, the guideline, and their answers.

    There are no names, and years are not connected with a qualification.
    """
    if experience := _experience(annotators):
        yield f"{experience}."
    yield Table.of(
        ("qualification", "people"), _qualifications(annotators), "Reviewers by qualification, in their own words"
    )
    if guideline:
        yield Verbatim("Guideline of the reviewers", guideline)
    else:
        yield "The reviewers had no written guideline of the project."
    yield from _answers(reviews)


def demographics(annotators: Sequence[Annotator]) -> list[str]:
    """Return the counts of reviewers by qualification and their years of experience, as texts for metadata."""
    counts = [f"{qualification}: {count}" for qualification, count in _qualifications(annotators)]
    return [*counts, *filter(None, [_experience(annotators)])]


def _qualifications(annotators: Sequence[Annotator]) -> list[tuple[str, int]]:
    return Counter(each.qualification.casefold() or UNSTATED for each in annotators).most_common()


def _experience(annotators: Sequence[Annotator]) -> str:
    """Return the median and the range of years in words; empty if no reviewer stated years."""
    years = sorted(each.years for each in annotators if each.years is not None)
    if not years:
        return ""
    stated = f"(stated by {len(years)} of {len(annotators)})"
    return f"Years of experience: median {median(years):g}, from {years[0]} to {years[-1]} {stated}"


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
