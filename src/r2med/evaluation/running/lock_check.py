"""Check that a system on a dataset is part of a lock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from r2med.data import Dataset
from r2med.evaluation.records.lock_file import Lock
from r2med.foundation.core.errors import UserError
from r2med.systems.system import System


def locked_settings(system: System, dataset: Dataset, k: int) -> dict[str, Any]:
    """Return every setting of a system on a dataset that is known before it runs."""
    return {**system.stage_keys(dataset), "k": k}


def check_lock(given: Lock, file: Path | str, system: System, dataset: Dataset, k: int) -> None:
    """Raise UserError if a system on a dataset is not part of a lock."""
    settings = locked_settings(system, dataset, k)
    if difference := given.difference(system.name, dataset.name, dataset.fingerprint, settings):
        raise UserError(f"{file}: {difference}; a lock allows nothing else")
