"""The plan of a stage: its work on some datasets, before anything is asked, loaded or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class StagePlan:
    """The work of one stage on all datasets of a plan. Unknown numbers are None."""

    name: str
    """The stage, as typed."""
    work: str
    """The work to do, and the part of it that the store has already."""
    fetch: float | None = 0.0
    """Estimated bytes of weights to download. 0 if they are here or not needed."""
    seconds: float | None = None
    """Estimated seconds; None if unknown."""
    missing: str = ""
    """One line about what is missing. Empty if the stage can run."""


class PlannedData(Protocol):
    """A dataset of a plan. If its card states its sizes, nothing is loaded."""

    @property
    def queries(self) -> int:
        """The number of queries."""

    @property
    def documents(self) -> int:
        """The number of documents."""

    def keeps(self, kind: str, model: str = "") -> bool:
        """Return True if the store has artefacts of this kind, and of this model, for the dataset."""
