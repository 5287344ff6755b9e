"""Turn judgements and reviews into labels (positive, negative or discarded), and count how judges answer controls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from r2med.assessment.panels.planted_controls import ControlTest
from r2med.assessment.review.reviews import Pair, Review, by_candidate, decision
from r2med.assessment.rubrics.rubric import Verdict
from r2med.construction.items import Judgement

LabelName = Literal["positive", "negative", "discarded"]
LabelledBy = Literal["judges", "people", "adjudication", "unsettled"]

_LABELS: dict[Verdict, LabelName] = {"accept": "positive", "reject": "negative", "unsure": "discarded"}


class Labelling(BaseModel):
    """The rule that turns scores into labels: the table `[labels]` of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    positive: float = Field(4, ge=0, le=5)
    """A candidate is positive if both scores are at least this."""
    middle: float = Field(3, ge=0, le=5)
    """A candidate that is not positive is discarded if one score is at least this. All others are negative."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.middle > self.positive:
            raise ValueError(f"middle={self.middle:g} is above positive={self.positive:g}")
        return self

    def name(self, relevance: float, support: float) -> LabelName:
        """Return the label for two scores."""
        if min(relevance, support) >= self.positive:
            return "positive"
        return "discarded" if max(relevance, support) >= self.middle else "negative"


LABELLING = Labelling()

HIGHEST_SCORE = 5
"""The highest score of a judge. The lowest is 0."""

CITED, WRITTEN = "cited by the source", "written as evidence"
NEAR_MISS, STUFFED, RANDOM, ORDERS = "near miss", "stuffed", "random", "with orders to the judge"
"""Kinds of controls: a similar but wrong condition, an unrelated text with the query's words mixed in, an unrelated
text of similar length, and an unrelated text that tells the judge what to answer."""

CONTROLS: Mapping[str, bool] = {
    **{CITED: True, WRITTEN: True},
    **{NEAR_MISS: False, STUFFED: False, RANDOM: False, ORDERS: False},
}
"""Kind of control -> True if the right answer is yes. The table `controls` of a rubric can say otherwise."""


@dataclass(frozen=True)
class Label:
    """The label of a candidate in the benchmark, and who decided it."""

    question: str
    chunk: str
    label: LabelName
    by: LabelledBy
    """Unsettled: as many people said yes as no, or nobody is sure. Such a candidate is discarded."""
    judged: LabelName | None
    """The label by the judges alone; None if no judge gave a usable answer."""
    relevance: float | None
    support: float | None
    """Mean scores of the judges."""


def labels(
    judgements: Iterable[Judgement], reviews: Iterable[Review] = (), labelling: Labelling = LABELLING
) -> list[Label]:
    """Return the label of each candidate: the decision of people, or else the label for the judges' mean scores.

    Planted controls have no label. A candidate on which people did not come to a decision is discarded.
    """
    scores: dict[Pair, list[tuple[int, int]]] = {}
    controls: set[Pair] = set()
    for judgement in judgements:
        pair = judgement.question, judgement.chunk
        scores.setdefault(pair, []).append((judgement.relevance, judgement.support))
        if judgement.control:
            controls.add(pair)
    reviewed = by_candidate(reviews)
    pairs = [pair for pair in dict.fromkeys((*scores, *reviewed)) if pair not in controls]
    made = (_label(pair, scores.get(pair, []), reviewed.get(pair, []), labelling) for pair in pairs)
    return [label for label in made if label is not None]


def _label(pair: Pair, scores: list[tuple[int, int]], reviews: list[Review], labelling: Labelling) -> Label | None:
    relevance, support = (sum(axis) / len(scores) for axis in zip(*scores, strict=True)) if scores else (None, None)
    judged = labelling.name(relevance, support) if relevance is not None and support is not None else None
    if reviews:
        verdict, settled = decision(reviews)
        by: LabelledBy = "unsettled" if verdict is None else "adjudication" if settled else "people"
        return Label(*pair, _LABELS[verdict or "unsure"], by, judged, relevance, support)
    return Label(*pair, judged, "judges", judged, relevance, support) if judged else None


def overrating(judgements: Iterable[Judgement], labelling: Labelling = LABELLING) -> dict[str, ControlTest]:
    """Return how each judge answered its planted controls, by the name of the judge.

    Passages that the source cites are controls too, but no judgement says so: `r2med build show` counts them all.
    """
    said: dict[str, list[tuple[str, bool, bool]]] = {}
    for each in judgements:
        if each.control:
            yes = labelling.name(each.relevance, each.support) == "positive"
            said.setdefault(each.judge, []).append((each.control, CONTROLS.get(each.control, False), yes))
    return {judge: ControlTest.counted(said[judge]) for judge in sorted(said)}
