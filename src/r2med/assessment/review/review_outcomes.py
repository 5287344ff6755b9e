"""What the reviews of texts lead to: items that people reject, and facts about them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from r2med.assessment.review.kinds import KINDS, PAGE
from r2med.assessment.review.reviews import Review, by_candidate, decided_correction, decided_reply, rubrics_of
from r2med.assessment.rubrics.rubric import RUBRICS, Point, Rubric

PUBLISHED_POINTS = tuple(point.name for kind in KINDS for point in RUBRICS[kind].points if point.publishes)
"""Points whose answers are columns of the queries."""
UNDECIDED = "unsure"
"""The answer to a point on which people did not come to a decision."""


def rejection_reasons(
    reviews: Iterable[Review], of: Literal["questions", "pages"] = "questions", planned: int = 1
) -> Mapping[str, tuple[str, ...]]:
    """Return the reasons for which people reject questions or pages: id -> reasons. Most of them said no.

    `planned` is the number of reviews that a text needs before it is rejected. An adjudication needs no others.
    """
    reasons: dict[str, tuple[str, ...]] = {}
    about = [review for review in reviews if (review.kind == PAGE) == (of == "pages")]
    for question, rubric, point, reply in _decisions(about, planned):
        if point.rejects and reply and rubric.by_word[reply].decides == "reject":
            reasons[question] = (*reasons.get(question, ()), point.rejects)
    return reasons


@dataclass(frozen=True)
class Correction:
    """A text that people corrected."""

    question: str
    kind: str
    """The rubric by which they reviewed it."""
    field: str
    """The text, by its name in the rubric."""
    text: str
    """The corrected text."""


def corrections(reviews: Iterable[Review], planned: int = 1) -> tuple[list[Correction], int]:
    """Return the corrections that people accept, and the number of texts whose correction is undecided.

    If two kinds correct the same text, the first of `KINDS` counts. `planned` is explained at `rejection_reasons`.
    """
    accepted: dict[tuple[str, str], Correction] = {}
    undecided = 0
    given = [review for review in reviews if not review.chunk]
    for kind, rubric in rubrics_of(given).items():
        for (question, _), said in by_candidate(given, kind).items() if rubric.corrected else ():
            is_due = len(said) >= planned or any(review.adjudicated for review in said)
            text = decided_correction(said)
            undecided += text is None
            if text and is_due and rubric.corrected:
                field = rubric.corrected.field
                accepted.setdefault((question, field), Correction(question, kind, field, text))
    return list(accepted.values()), undecided


def counted_reasons(reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Return how many items each reason rejects, as in "2 not answerable". Each item counts once."""
    counts = Counter(first for first, *_ in reasons.values())
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())


def published_replies(reviews: Iterable[Review]) -> Mapping[str, Mapping[str, str]]:
    """Return what people say about queries for analysis: id of the question -> point -> what they decided."""
    replies: dict[str, dict[str, str]] = {}
    for question, _, point, reply in _decisions(reviews):
        if point.publishes:
            replies.setdefault(question, {})[point.name] = reply or UNDECIDED
    return replies


def reply_counts(reviews: Iterable[Review]) -> Mapping[Point, Counter[str]]:
    """Return how often people decide yes or no about each point, and how often they do not decide."""
    counts: dict[Point, Counter[str]] = {}
    for _, _, point, reply in _decisions(reviews):
        counts.setdefault(point, Counter())[reply or UNDECIDED] += 1
    return counts


def _decisions(reviews: Iterable[Review], planned: int = 1) -> Iterator[tuple[str, Rubric, Point, str | None]]:
    """Yield the question, the rubric, the point and the decision about each text. None: it is undecided.

    A text with fewer than `planned` reviews is not decided yet, unless somebody adjudicated it.
    """
    given = [review for review in reviews if not review.chunk]
    for kind, rubric in rubrics_of(given).items():
        for (question, _), said in by_candidate(given, kind).items():
            for point in rubric.points:
                reply, adjudicated = decided_reply(said, point.name)
                if adjudicated or len(said) >= planned:
                    yield question, rubric, point, reply
