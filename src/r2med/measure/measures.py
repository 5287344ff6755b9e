"""A measure is a value: it prints as it is typed, `nDCG@10`, and parses back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from r2med.errors import UserError, unknown

FAMILIES = ("nDCG", "MAP", "R", "P", "MRR")
ALIASES = {"recall": "R", "precision": "P"}

CUTOFFS = (1, 3, 5, 10, 25, 50, 100, 1000)

_FORM = re.compile(r"([A-Za-z]+)(?:@([0-9]{1,9}))?")


@dataclass(frozen=True, order=True)
class Measure:
    """A family of measures with a cutoff, or without one over the whole ranking."""

    family: str
    cutoff: int | None = None

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure that prints as `text`, whatever its case; `Recall@10` and `Precision@10` are known too."""
        match = _FORM.fullmatch(text.strip())
        by_lower = {**{name.lower(): name for name in FAMILIES}, **ALIASES}
        family = by_lower.get(match[1].lower()) if match else None
        if match is None or family is None:
            at = match[2] if match and match[2] else "10"
            raise unknown("measure", text[:60], [name if name == "MRR" else f"{name}@{at}" for name in FAMILIES])
        cutoff = int(match[2]) if match[2] else None
        if cutoff == 0 or (cutoff is None and family in ("R", "P")):
            raise UserError(f"{text!r} needs a cutoff of at least 1, such as {family}@10")
        return cls(family, cutoff)


DEFAULT = (
    *(Measure(family, cutoff) for family in ("nDCG", "MAP", "R", "P") for cutoff in CUTOFFS),
    Measure("MRR"),
)
