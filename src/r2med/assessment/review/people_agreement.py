"""Agreement of reviewers about each point of each kind of item."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from r2med.assessment.panels.ratings import RaterAgreement
from r2med.assessment.review.reviews import Review, ratings_of, rubrics_of
from r2med.assessment.rubrics.rubric import Point, Rubric
from r2med.evaluation.measure.coefficients import FEWEST_BOUNDED_UNITS

HIGH_AC, PARADOX_GAP = 0.6, 0.3
"""An AC that is called high, and the difference of AC and α from which a sentence explains it."""


@dataclass(frozen=True)
class PointAgreement:
    """How far reviewers agree about one point. Only their first verdicts count, not adjudications."""

    kind: Rubric
    point: Point
    found: RaterAgreement

    @property
    def name(self) -> str:
        """The kind, and the point if the kind has several."""
        return f"{self.kind.name}: {self.point.name}" if self.kind.has_several_points else self.kind.name

    @property
    def is_constant(self) -> bool:
        """True if all reviewers gave the same answer to all items. κ and α are not defined then."""
        return self.found.commonest[1] == 1

    @property
    def paradox(self) -> str:
        """A sentence that explains why α is much lower than AC; empty if it is not, or if there are few items."""
        ac, alpha = self.found.gwet.value, self.found.alpha.value
        if self.found.items < FEWEST_BOUNDED_UNITS or not (ac >= HIGH_AC and ac - alpha >= PARADOX_GAP):
            return ""
        answer, share = self.found.commonest
        return (
            f"{self.name}: reviewers agree in {self.found.observed.value:.0%} of pairs, yet α is {alpha:.2f}, because "
            f"{share:.0%} of all answers are {answer} and chance alone would make them agree often. AC ({ac:.2f}) is "
            "not lowered by this. These items hardly show if reviewers can tell good ones from bad ones."
        )


def agreement_by_point(reviews: Iterable[Review]) -> list[PointAgreement]:
    """Return the agreement about each point that at least two people answered for one item, in the order of kinds."""
    given = list(reviews)
    found = (
        PointAgreement(kind, point, ratings_of(given, kind, point.name).agreement())
        for kind in rubrics_of(given).values()
        for point in kind.points
    )
    return [each for each in found if each.found.items]
