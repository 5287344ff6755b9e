"""Many systems on many datasets: work they share is done once, and one that cannot run need not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from r2med.data import Dataset, load
from r2med.errors import UserError
from r2med.results.evaluation import DEPTH, evaluate, is_recorded
from r2med.results.record import Record
from r2med.store import Store, default_store
from r2med.system import System


@dataclass(frozen=True)
class Cell:
    """One system on one dataset: its record, or the line that says why there is none."""

    system: str
    dataset: str
    record: Record | None
    reused: bool = False
    error: str = ""


@dataclass(frozen=True)
class Batch:
    """How every system is evaluated on every dataset."""

    out: Path
    k: int = DEPTH
    store: Store | None = None
    fresh: bool = False
    keep_going: bool = False
    """Tell of an error of the user's making in its cell, instead of raising it."""
    announce: Callable[[str], None] = lambda what: None

    def evaluate(self, systems: Sequence[System], names: Sequence[str]) -> list[list[Cell]]:
        """Return a row of cells for each system."""
        store = self.store or default_store()
        datasets = [self._attempt(partial(load, name, store)) for name in names]
        there = [dataset for dataset in datasets if isinstance(dataset, Dataset)]
        # What would stop a system late, after many calls were paid for, is to stop it now.
        faults = [self._attempt(partial(system.check, there)) for system in systems]
        return [  # not datasets first: a model is then loaded once, however many systems there are
            [self._cell(system, fault, name, dataset, store) for name, dataset in zip(names, datasets, strict=True)]
            for system, fault in zip(systems, faults, strict=True)
        ]

    def _cell(self, system: System, fault: object, name: str, dataset: object, store: Store) -> Cell:
        found = fault if isinstance(fault, UserError) else dataset
        if isinstance(found, Dataset):
            self.announce(f"{found.name} · {system.name}")
            found = self._attempt(partial(self._evaluated, system, found, store))
        if isinstance(found, Cell):
            return found
        return Cell(system.name, name, None, error=str(found))

    def _evaluated(self, system: System, dataset: Dataset, store: Store) -> Cell:
        reused = not self.fresh and is_recorded(system, dataset, self.out, self.k, store)
        record = evaluate(system, dataset, self.out, self.k, store, self.fresh)
        return Cell(system.name, dataset.name, record, reused)

    def _attempt(self, work: Callable[[], object]) -> object:
        try:
            return work()
        except UserError as error:
            if not self.keep_going:
                raise
            return error
