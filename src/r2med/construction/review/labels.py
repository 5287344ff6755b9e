"""Judgements and reviews become labels: positive, negative or discarded; and how each judge rates the controls."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from r2med.construction.items import Judgement
from r2med.construction.review.reviews import Pair, Review, Verdict, by_candidate, decision

Word = Literal["positive", "negative", "discarded"]

_WORDS: dict[Verdict, Word] = {"accept": "positive", "reject": "negative", "unsure": "discarded"}


class Labelling(BaseModel):
    """When scores make a label; the table `[labels]` of a plan."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    positive: float = Field(4, ge=0, le=5)
    """Positive if both scores are at least this."""
    middle: float = Field(3, ge=0, le=5)
    """Discarded if it is not positive, but one of the scores is at least this. Everything else is negative."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.middle > self.positive:
            raise ValueError(f"middle={self.middle:g} is above positive={self.positive:g}")
        return self

    def word(self, relevance: float, support: float) -> Word:
        """Return the label of two scores."""
        if min(relevance, support) >= self.positive:
            return "positive"
        return "discarded" if max(relevance, support) >= self.middle else "negative"


LABELLING = Labelling()


@dataclass(frozen=True)
class Label:
    """What a candidate counts as in the benchmark, and who says so."""

    question: str
    chunk: str
    label: Word
    by: Literal["judges", "people", "adjudication"]
    judged: Word | None
    """What the judges alone say; None if no judge said anything usable."""
    relevance: float | None
    support: float | None
    """Means over the judges."""


def labels(
    judgements: Iterable[Judgement], reviews: Iterable[Review] = (), labelling: Labelling = LABELLING
) -> list[Label]:
    """Return the label of each candidate: people's where there is one, else that of the judges' mean scores.

    Planted controls have none. People who are not sure, all of them, leave the label to the judges.
    """
    scores: dict[Pair, list[tuple[int, int]]] = {}
    controls: set[Pair] = set()
    for judgement in judgements:
        pair = judgement.question, judgement.chunk
        scores.setdefault(pair, []).append((judgement.relevance, judgement.support))
        if judgement.control:
            controls.add(pair)
    told = by_candidate(reviews)
    pairs = [pair for pair in dict.fromkeys((*scores, *told)) if pair not in controls]
    made = (_label(pair, scores.get(pair, []), told.get(pair, []), labelling) for pair in pairs)
    return [label for label in made if label is not None]


def _label(pair: Pair, scores: list[tuple[int, int]], reviews: list[Review], labelling: Labelling) -> Label | None:
    relevance, support = (sum(axis) / len(scores) for axis in zip(*scores, strict=True)) if scores else (None, None)
    judged = labelling.word(relevance, support) if relevance is not None and support is not None else None
    verdict, settled = decision(reviews)
    if verdict is not None:
        by: Literal["people", "adjudication"] = "adjudication" if settled else "people"
        return Label(*pair, _WORDS[verdict], by, judged, relevance, support)
    return Label(*pair, judged, "judges", judged, relevance, support) if judged else None


@dataclass(frozen=True)
class Overrating:
    """How a judge scores controls of one kind, none of which is evidence."""

    judge: str
    control: str
    count: int
    positive: int
    """Those it called positive."""
    discarded: int
    relevance: float
    support: float
    """Mean scores."""


def overrating(judgements: Iterable[Judgement], labelling: Labelling = LABELLING) -> list[Overrating]:
    """Return how each judge scores each kind of control, by name."""
    scores: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for judgement in judgements:
        if judgement.control:
            scores.setdefault((judgement.judge, judgement.control), []).append((judgement.relevance, judgement.support))
    rows = []
    for (judge, control), given in sorted(scores.items()):
        words = [labelling.word(*pair) for pair in given]
        relevance, support = (sum(axis) / len(given) for axis in zip(*given, strict=True))
        counts = words.count("positive"), words.count("discarded")
        rows.append(Overrating(judge, control, len(given), *counts, relevance, support))
    return rows
