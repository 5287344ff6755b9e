"""Measures as values: a measure prints as it is typed, `nDCG@10`, and parses back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from r2med.foundation.core.errors import UserError, unknown

FAMILIES = ("nDCG", "MAP", "R", "P", "MRR")
ASPECT_FAMILIES = ("alpha-nDCG", "weighted-alpha-nDCG", "A-Recall")
"""Families that need the aspects of the answers: `aspect_scores.py` computes them."""
ANSWER_FAMILIES = (
    "accuracy",
    "nugget-recall",
    "vital-recall",
    "nugget-precision",
    "citation-support",
    "citation-relevance",
    "returned-recall",
    "shown-recall",
    "opened-recall",
    "cited-recall",
    "kept-recall",
    "confidence",
    "brier",
)
"""Families that are measured on the answers of a reader, not on rankings: answer records hold them."""
ALIASES = {"recall": "R", "precision": "P"}

CUTOFFS = (1, 3, 5, 10, 20, 25, 50, 100, 1000)

_FORM = re.compile(r"([A-Za-z]+(?:-[A-Za-z]+)*)(?:@([0-9]{1,9}))?")


@dataclass(frozen=True, order=True)
class Measure:
    """A family of measures with a cutoff. Without a cutoff it is computed over the whole ranking."""

    family: str
    """The name without the cutoff, such as nDCG."""
    cutoff: int | None = None
    """The number of documents that count; None for the whole ranking."""

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @property
    def lower_is_better(self) -> bool:
        """True for errors of confidence."""
        return self.family == "brier"

    @property
    def from_qrels(self) -> bool:
        """True if the measure can be computed from qrels alone."""
        return self.family in FAMILIES

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure that prints as `text`, in any case. `Recall@10` and `Precision@10` are accepted too."""
        match = _FORM.fullmatch(text.strip())
        families = (*FAMILIES, *ASPECT_FAMILIES, *ANSWER_FAMILIES)
        by_lower = {**{name.lower(): name for name in families}, **ALIASES}
        family = by_lower.get(match[1].lower()) if match else None
        if match is None or family is None:
            at = match[2] if match and match[2] else "10"
            raise unknown("measure", text[:60], [name if name == "MRR" else f"{name}@{at}" for name in FAMILIES])
        cutoff = int(match[2]) if match[2] else None
        if family in ANSWER_FAMILIES:
            if cutoff is not None:
                raise UserError(f"{text!r}: a measure of answers has no cutoff: {family}")
            return cls(family)
        if cutoff == 0 or (cutoff is None and family not in ("nDCG", "MAP", "MRR")):
            raise UserError(f"{text!r} needs a cutoff of at least 1, such as {family}@10")
        return cls(family, cutoff)


DEFAULT_MEASURES = (
    *(Measure(family, cutoff) for family in ("nDCG", "MAP", "R", "P") for cutoff in CUTOFFS),
    Measure("MRR"),
)
ASPECT_MEASURES = (
    Measure("alpha-nDCG", 10),
    Measure("alpha-nDCG", 25),
    Measure("weighted-alpha-nDCG", 25),
    Measure("A-Recall", 10),
    Measure("A-Recall", 25),
)
"""The measures of records on datasets with aspects: those of BRIGHT-Pro, with its cutoff 25, and two at 10."""
HEADLINE_MEASURE = Measure("nDCG", 10)
"""The main measure of the benchmark's tables."""

RECORDED_MEASURES = tuple(map(str, (*DEFAULT_MEASURES, *ASPECT_MEASURES)))
"""The names of all measures that a record can hold."""


def recorded_measure(text: str) -> str:
    """Return the name of a measure of records. Raises UserError if it is not one of them.

    Only records on datasets with aspects hold the measures of aspects.
    """
    name = str(Measure.parse(text))
    if name not in RECORDED_MEASURES:
        raise UserError(f"records do not hold {name}: choose one of {', '.join(map(str, DEFAULT_MEASURES))}")
    return name


def heading(measure: str) -> str:
    """Return a heading of scores in points, with the direction of the measure if lower is better."""
    return f"{measure} × 100{', lower is better' if Measure.parse(measure).lower_is_better else ''}"


AVERAGE = "average"
"""The label of the mean over all datasets of one group."""
