"""What the reviews of texts lead to: queries and pages that people reject, and facts about queries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from r2med.assessment.review.review_kinds import KINDS, ReviewPoint, YesNo
from r2med.assessment.review.reviews import Review, by_candidate, decided_reply

PUBLISHED_POINTS = tuple(point.name for kind in KINDS.values() for point in kind.points if point.publishes)
"""Points whose answers are columns of the queries."""


def rejection_reasons(
    reviews: Iterable[Review], of: Literal["questions", "pages"] = "questions", planned: int = 1
) -> Mapping[str, tuple[str, ...]]:
    """Return the reasons for which people reject questions or pages: id -> reasons. Most of them said no.

    `planned` is the number of reviews that a text needs before it is rejected. An adjudication needs no others.
    """
    reasons: dict[str, tuple[str, ...]] = {}
    about = [review for review in reviews if KINDS[review.kind].of == of]
    for question, point, reply in _decisions(about, planned):
        if point.rejects and reply == "no":
            reasons[question] = (*reasons.get(question, ()), point.rejects)
    return reasons


def counted_reasons(reasons: Mapping[str, tuple[str, ...]]) -> str:
    """Return how many items each reason rejects, as in "2 not answerable". Each item counts once."""
    counts = Counter(first for first, *_ in reasons.values())
    return ", ".join(f"{count:,} {reason}" for reason, count in counts.most_common())


def published_replies(reviews: Iterable[Review]) -> Mapping[str, Mapping[str, YesNo]]:
    """Return what people say about queries for analysis: id of the question -> point -> answer of the majority."""
    replies: dict[str, dict[str, YesNo]] = {}
    for question, point, reply in _decisions(reviews):
        if point.publishes:
            replies.setdefault(question, {})[point.name] = reply
    return replies


def reply_counts(reviews: Iterable[Review]) -> Mapping[ReviewPoint, Counter[YesNo]]:
    """Return how often people decide yes, no or unsure about each point. Texts that all are unsure of do not count."""
    counts: dict[ReviewPoint, Counter[YesNo]] = {}
    for _, point, reply in _decisions(reviews):
        counts.setdefault(point, Counter())[reply] += 1
    return counts


def _decisions(reviews: Iterable[Review], planned: int = 1) -> Iterator[tuple[str, ReviewPoint, YesNo]]:
    """Yield the question, the point and the answer of each decision about a text of a question.

    A text with fewer than `planned` reviews is not decided yet, unless somebody adjudicated it.
    """
    given = [review for review in reviews if not review.chunk]
    for kind in KINDS.values():
        for (question, _), said in by_candidate(given, kind.name).items():
            for point in kind.points:
                reply, adjudicated = decided_reply(said, point.name)
                if reply is not None and (adjudicated or len(said) >= planned):
                    yield question, point, reply
