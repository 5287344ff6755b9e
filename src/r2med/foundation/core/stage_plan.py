"""The plan of a stage: its work on some datasets, before anything is asked, loaded or downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from r2med.foundation.core.cards import parameter_count

HALF_PRECISION_BYTES, MEMORY_MARGIN = 2, 1.2
"""Bytes of a weight in half precision, and the factor for activations and caches beside the weights."""


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
    memory: float | None = 0.0
    """Estimated bytes of GPU memory for the weights that run in this process. 0 if there are none."""
    served: float | None = 0.0
    """Estimated bytes of GPU memory that the stage's LLM needs at its server. 0 if a provider serves it."""
    calls: int | None = 0
    """Estimated number of LLM calls."""
    dollars: float | None = 0.0
    """Estimated price of its calls. None if no price is known, as for a server of your own."""


def gpu_memory(parameters: str) -> float | None:
    """Return the estimated bytes of GPU memory of a model from a card's `parameters`; None if they state no size."""
    count = parameter_count(parameters)
    return None if count is None else count * HALF_PRECISION_BYTES * MEMORY_MARGIN


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
