"""Agreement of reviewers about each point of each kind of item, by several coefficients."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from r2med.assessment.review.reviews import Review, rating_table, rubrics_of
from r2med.assessment.rubrics.rubric import Point, Rubric
from r2med.evaluation.measure.agreement import (
    FEWEST_BOUNDED_UNITS,
    Agreement,
    cohen_kappa,
    fleiss_kappa,
    gwet_ac1,
    krippendorff_alpha,
    observed_agreement,
)
from r2med.evaluation.measure.scores import Floats

HIGH_AC1, PARADOX_GAP = 0.6, 0.3
"""An AC1 that is called high, and the difference of AC1 and κ from which a sentence explains it."""


@dataclass(frozen=True)
class PointAgreement:
    """How far reviewers agree about one point. Only their first verdicts count, not adjudications."""

    kind: Rubric
    point: Point
    items: int
    """Number of items with at least two reviews."""
    people: int
    observed: float
    """Share of pairs of reviewers of one item who gave the same answer."""
    alpha: Agreement
    """Krippendorff's α, ordinal: no, unsure, yes."""
    kappa: Agreement
    """Cohen's κ of two reviewers, Fleiss' κ of more."""
    ac1: Agreement
    """Gwet's AC1."""
    commonest: tuple[str, float]
    """The answer that was given most often, and its share."""

    @property
    def name(self) -> str:
        """The kind, and the point if the kind has several."""
        return f"{self.kind.name}: {self.point.name}" if self.kind.has_several_points else self.kind.name

    @property
    def kappa_name(self) -> str:
        """The kind of κ."""
        return "Cohen’s" if self.people == 2 else "Fleiss’"

    @property
    def is_constant(self) -> bool:
        """True if all reviewers gave the same answer to all items. κ and α are not defined then."""
        return self.commonest[1] == 1

    @property
    def paradox(self) -> str:
        """A sentence that explains why κ is much lower than AC1; empty if it is not, or if there are few items."""
        high = self.ac1.value >= HIGH_AC1 and self.ac1.value - self.kappa.value >= PARADOX_GAP
        if not high or self.items < FEWEST_BOUNDED_UNITS:
            return ""
        answer, share = self.commonest
        return (
            f"{self.name}: reviewers agree in {self.observed:.0%} of pairs, yet κ is {self.kappa.value:.2f}, because "
            f"{share:.0%} of all answers are {answer} and chance alone would make them agree often. AC1 "
            f"({self.ac1.value:.2f}) is not lowered by this. These items hardly show if reviewers can tell good ones "
            "from bad ones."
        )


def agreement_by_point(reviews: Iterable[Review]) -> list[PointAgreement]:
    """Return the agreement about each point that at least two people answered for one item, in the order of kinds."""
    given = list(reviews)
    found = (_agreement(kind, point, given) for kind in rubrics_of(given).values() for point in kind.points)
    return [each for each in found if each is not None]


def _agreement(kind: Rubric, point: Point, reviews: list[Review]) -> PointAgreement | None:
    _, people, table = rating_table(reviews, kind.name, point.name)
    table = table[(~np.isnan(table)).sum(axis=1) >= 2]
    if not len(table):
        return None
    return PointAgreement(
        kind,
        point,
        len(table),
        len(people),
        observed_agreement(table),
        krippendorff_alpha(table, "ordinal"),
        cohen_kappa(table) if len(people) == 2 else fleiss_kappa(table),
        gwet_ac1(table),
        _commonest(kind, table),
    )


def _commonest(kind: Rubric, table: Floats) -> tuple[str, float]:
    shares = {
        word.word: float((table == place).sum() / (~np.isnan(table)).sum()) for place, word in enumerate(kind.words)
    }
    return max(shares.items(), key=lambda each: each[1])
