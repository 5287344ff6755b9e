"""A measure is a value: it prints as it is typed, `nDCG@10`, and parses back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from r2med.errors import UserError, nearest

FAMILIES = {"nDCG": "ndcg", "MAP": "map", "R": "recall", "P": "P", "MRR": "recip_rank"}
"""Our name -> trec_eval's."""

CUTOFFS = (1, 3, 5, 10, 25, 50, 100, 1000)

_FORM = re.compile(r"([A-Za-z]+)(?:@([0-9]+))?")


@dataclass(frozen=True, order=True)
class Measure:
    """A family of measures with a cutoff, or without one over the whole ranking."""

    family: str
    cutoff: int | None = None

    def __str__(self) -> str:
        return self.family if self.cutoff is None else f"{self.family}@{self.cutoff}"

    @classmethod
    def parse(cls, text: str) -> Measure:
        """Return the measure that prints as `text`, whatever its case."""
        match = _FORM.fullmatch(text.strip())
        by_lower = {name.lower(): name for name in FAMILIES}
        family = by_lower.get(match.group(1).lower()) if match else None
        if match is None or family is None:
            known = [name if name == "MRR" else f"{name}@10" for name in FAMILIES]
            raise UserError(f"no measure {text!r}{nearest(text, known)}: {', '.join(known)}")
        cutoff = int(match.group(2)) if match.group(2) else None
        if cutoff == 0 or (cutoff is None and family in ("R", "P")):
            raise UserError(f"{text!r} needs a cutoff of at least 1, such as {family}@10")
        return cls(family, cutoff)

    @property
    def trec_name(self) -> str:
        """What trec_eval prints for it."""
        base = FAMILIES[self.family]
        if self.cutoff is None:
            return base
        return f"{base}_cut_{self.cutoff}" if self.family in ("nDCG", "MAP") else f"{base}_{self.cutoff}"


DEFAULT = (
    *(Measure(family, cutoff) for family in ("nDCG", "MAP", "R", "P") for cutoff in CUTOFFS),
    Measure("MRR"),
)
