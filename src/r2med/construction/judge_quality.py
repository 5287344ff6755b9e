"""How far LLM judges agree with each other and with people, and how many relevant candidates the labels hold.

People review a sample. `r2med review serve --sample` takes equal numbers of each label by the judges, at random within
a label. So reviewed candidates are not a random sample of all candidates, and plain shares of them would mislead. Every
rate here is an estimate for all candidates: each stratum counts by its size
(`assessment/review/stratified_shares.py`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from r2med.assessment.panels.ratings import Ratings
from r2med.assessment.review.reviews import Pair
from r2med.assessment.review.stratified_shares import Stratum, share_of, summed
from r2med.assessment.rubrics.rubric import Verdict
from r2med.construction.items import Judgement
from r2med.construction.labels import LABELLING, Label, Labelling, LabelName, labels
from r2med.foundation.pages.estimate import Estimate

FEWEST_REVIEWS = 10
"""Number of reviews below which no interval is given: Wilson's would hold the truth too rarely."""
SCORES = ("0", "1", "2", "3", "4", "5")
"""The scores of judges."""
LABEL_ORDER: tuple[LabelName, ...] = ("negative", "discarded", "positive")
"""Labels from the lowest to the highest, for coefficients of agreement."""

Decisions = Mapping[Pair, Verdict]
"""Decisions of people, by candidate."""


def judge_ratings(judgements: Iterable[Judgement], labelling: Labelling = LABELLING) -> dict[str, Ratings]:
    """Return both scores of each judge, and the label that they give. Controls do not count."""
    given = [judgement for judgement in judgements if not judgement.control]

    def ratings(words: Sequence[str], said: Callable[[Judgement], str]) -> Ratings:
        return Ratings.of(words, (((each.question, each.chunk), each.judge, said(each)) for each in given))

    return {
        "relevance": ratings(SCORES, lambda each: str(each.relevance)),
        "support": ratings(SCORES, lambda each: str(each.support)),
        "label": ratings(LABEL_ORDER, lambda each: labelling.name(each.relevance, each.support)),
    }


@dataclass
class ReviewedStratum:
    """Candidates with one label by the judges, and how many of a random sample people accepted and rejected."""

    items: int = 0
    accepted: int = 0
    rejected: int = 0
    open: int = 0
    """Number of reviewed candidates that people did not decide."""

    @property
    def reviewed(self) -> int:
        """Number of candidates that people reviewed."""
        return self.accepted + self.rejected + self.open

    def add(self, verdict: Verdict | None) -> None:
        """Count a candidate."""
        self.items += 1
        self.accepted += verdict == "accept"
        self.rejected += verdict == "reject"
        self.open += verdict == "unsure"

    def decided(self, accept: bool) -> ReviewedStratum:
        """Return the stratum as if people accepted, or rejected, everything that is open."""
        accepted = self.open if accept else 0
        return ReviewedStratum(self.items, self.accepted + accepted, self.rejected + self.open - accepted)

    def relevant(self) -> Estimate:
        """Return the number of candidates that people would accept."""
        return Stratum(self.items, self.reviewed, self.accepted).total()

    def irrelevant(self) -> Estimate:
        """Return the number of candidates that people would reject."""
        return Stratum(self.items, self.reviewed, self.rejected).total()


Strata = Sequence[ReviewedStratum]


@dataclass(frozen=True)
class Rates:
    """Rates of positive against all other labels. A rate is None if people reviewed nothing that it needs."""

    sensitivity: Estimate | None
    """Share of the candidates that people would accept which have the label positive."""
    specificity: Estimate | None
    """Share of the candidates that people would reject which have another label."""
    precision: Estimate | None
    """Share of the positives that people would accept."""


def rates(positive: Strata, other: Strata) -> Rates:
    """Return the rates of labels, estimated for all candidates of the strata of positive and of other labels.

    If people left candidates open, a rate is a range: from the worst case, in which they reject positives and accept
    others, to the best case.
    """
    worst, best = (_decided_rates(*_settled(positive, other, best=each)) for each in (False, True))
    return Rates(
        _between(worst.sensitivity, best.sensitivity),
        _between(worst.specificity, best.specificity),
        _between(worst.precision, best.precision),
    )


def _settled(positive: Strata, other: Strata, *, best: bool) -> tuple[Strata, Strata]:
    return [each.decided(best) for each in positive], [each.decided(not best) for each in other]


def _between(worst: Estimate | None, best: Estimate | None) -> Estimate | None:
    """Return the range from the worst to the best case; None if one of them is not defined."""
    if worst is None or best is None or worst == best:
        return worst if best is not None else None
    return Estimate(worst.value, worst.low, best.high, most=best.value)


def _decided_rates(positive: Strata, other: Strata) -> Rates:
    decided = sum(each.reviewed for each in (*positive, *other))
    called, rest = _merged(positive), _merged(other)
    precision = _with_enough(_precision(called), decided) if called else None
    if called is None or rest is None:
        return Rates(None, None, precision)
    sensitivity = share_of(_relevant(called), _relevant(rest))
    specificity = share_of(_irrelevant(rest), _irrelevant(called))
    return Rates(_with_enough(sensitivity, decided), _with_enough(specificity, decided), precision)


def recall_after_review(positive: Strata, other: Strata) -> Estimate | None:
    """Return the share of relevant candidates that are positive once people's decisions count.

    None if people reviewed none of a stratum. It is a range if people left candidates open.
    """
    corrected = sum(each.accepted for each in other)
    cases = (_decided_recall(*_settled(positive, other, best=each), corrected) for each in (False, True))
    return _between(*cases)


def _decided_recall(positive: Strata, other: Strata, corrected: int) -> Estimate | None:
    every = [*positive, *other]
    if not every or not all(each.reviewed for each in every):
        return None
    found = share_of(_moved(_relevant(positive), corrected), _moved(_relevant(other), -corrected))
    return _with_enough(found, sum(each.reviewed for each in every))


def _relevant(strata: Strata) -> Estimate:
    return summed(each.relevant() for each in strata)


def _irrelevant(strata: Strata) -> Estimate:
    return summed(each.irrelevant() for each in strata)


@dataclass(frozen=True)
class JudgeConfusion:
    """The labels by one judge's own scores against the decisions of people."""

    judge: str
    counts: Counter[tuple[LabelName, Verdict]]
    """Number of reviewed candidates by the label and the decision. These are counts of the sample."""
    rates: Rates
    """Estimates for all candidates that the judge scored."""

    @property
    def reviewed(self) -> int:
        """Number of judged candidates that people reviewed."""
        return sum(self.counts.values())


def judge_confusions(
    judgements: Iterable[Judgement], decisions: Decisions, labelling: Labelling = LABELLING
) -> list[JudgeConfusion]:
    """Return each judge's confusion against people, over the candidates that people decided. Controls do not count."""
    given = [judgement for judgement in judgements if not judgement.control]
    sampled = {(label.question, label.chunk): label.judged for label in labels(given, (), labelling)}
    by_judge: dict[str, list[Judgement]] = defaultdict(list)
    for judgement in given:
        by_judge[judgement.judge].append(judgement)
    found = (_confusion(judge, own, sampled, decisions, labelling) for judge, own in sorted(by_judge.items()))
    return [each for each in found if each.reviewed]


def _confusion(
    judge: str,
    judgements: Iterable[Judgement],
    sampled: Mapping[Pair, LabelName | None],
    decisions: Decisions,
    labelling: Labelling,
) -> JudgeConfusion:
    counts = Counter[tuple[LabelName, Verdict]]()
    strata: dict[bool, dict[LabelName | None, ReviewedStratum]] = {True: {}, False: {}}
    for judgement in judgements:
        pair = judgement.question, judgement.chunk
        label, verdict = labelling.name(judgement.relevance, judgement.support), decisions.get(pair)
        strata[label == "positive"].setdefault(sampled[pair], ReviewedStratum()).add(verdict)
        if verdict is not None:
            counts[label, verdict] += 1
    return JudgeConfusion(judge, counts, rates(*(list(strata[called].values()) for called in (True, False))))


def _merged(strata: Strata) -> Strata | None:
    """Return strata that all have a review: one without is joined to the largest other; None if no one has any."""
    reviewed = sorted((each for each in strata if each.reviewed), key=lambda each: -each.items)
    if not reviewed:
        return None if any(each.items for each in strata) else []
    rest = sum(each.items for each in strata if not each.reviewed)
    return [replace(reviewed[0], items=reviewed[0].items + rest), *reviewed[1:]]


def _precision(positive: Strata) -> Estimate:
    items = sum(each.items for each in positive)
    found = _relevant(positive)
    low, high = found.bounds
    return Estimate(found.value / items, low / items, high / items)


def _with_enough(estimate: Estimate, reviewed: int) -> Estimate | None:
    """Return an estimate without its interval if people reviewed too few; None if it is not defined."""
    if np.isnan(estimate.value):
        return None
    return estimate if reviewed >= FEWEST_REVIEWS else Estimate(estimate.value)


def label_recall(labelled: Iterable[Label], decisions: Decisions) -> Estimate | None:
    """Return the share of relevant candidates that the final labels call positive, estimated from the reviews.

    Candidates that the judges did not call positive are the random part: what people accept there was missed. They
    become positive, so only unreviewed candidates can still be missed. None if people reviewed none of a label that
    candidates have. Candidates without a judgement, and documents that are no candidates, are not part of it.
    """
    strata: dict[bool, dict[LabelName, ReviewedStratum]] = {True: {}, False: {}}
    for label in labelled:
        if label.judged is not None:
            verdict = decisions.get((label.question, label.chunk))
            strata[label.judged == "positive"].setdefault(label.judged, ReviewedStratum()).add(verdict)
    return recall_after_review(*(list(strata[called].values()) for called in (True, False)))


def _moved(total: Estimate, known: int) -> Estimate:
    """Return a total with a known number more."""
    low, high = total.bounds
    return Estimate(total.value + known, low + known, high + known)
