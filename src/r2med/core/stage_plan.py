"""What a stage would do on some datasets, before anything is asked, loaded or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class StagePlan:
    """The work of one stage on all datasets of a plan. None where a figure is not known."""

    name: str
    work: str
    """What is to be done, and what of it is kept."""
    fetch: float | None = 0.0
    """Bytes of weights, about; 0 where they are here or none are needed."""
    seconds: float | None = None
    missing: str = ""
    """What would stop it, in one line."""


class PlannedData(Protocol):
    """A dataset of a plan. Its sizes come from its card where that has them, so that nothing is loaded."""

    @property
    def queries(self) -> int:
        """The number of queries."""

    @property
    def documents(self) -> int:
        """The number of documents."""

    def keeps(self, kind: str, model: str = "") -> bool:
        """Return True if the store has artefacts of this kind, and of this model, for the dataset."""
