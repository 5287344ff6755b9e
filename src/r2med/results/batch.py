"""Many systems on many datasets: work they share is done once, and one that cannot run need not stop the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.data import Dataset, load
from r2med.errors import UserError
from r2med.expand.contracts import Checked, check
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


def evaluate_all(
    systems: Sequence[System],
    datasets: Sequence[str],
    out: Path | str,
    k: int = DEPTH,
    store: Store | None = None,
    *,
    fresh: bool = False,
    keep_going: bool = False,
    announce: Callable[[str], None] = lambda what: None,
) -> list[list[Cell]]:
    """Return a row of cells for each system; with `keep_going` an error of the user's making is told at the end."""
    store = store or default_store()
    opened: dict[str, Dataset] = {}
    stages = [stage for system in systems for stage in (system.expander, *system.rerankers)]
    if not keep_going and any(isinstance(stage, Checked) for stage in stages):
        # A template that cannot be used for the last dataset is told before the first has cost anything.
        opened = {name: load(name, store) for name in datasets}
        check(stages, list(opened.values()))
    rows = []
    for system in systems:  # not datasets first: a model is then loaded once, however many systems there are
        row = []
        for name in datasets:
            try:
                dataset = opened[name] = opened.get(name) or load(name, store)
                announce(f"{dataset.name} · {system.name}")
                reused = not fresh and is_recorded(system, dataset, Path(out), k, store)
                record = evaluate(system, dataset, out, k, store, fresh=fresh)
                row.append(Cell(system.name, dataset.name, record, reused))
            except UserError as error:
                if not keep_going:
                    raise
                row.append(Cell(system.name, name, None, error=str(error)))
        rows.append(row)
    return rows
