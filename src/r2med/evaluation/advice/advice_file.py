"""The file of an advice in a folder of results."""

from __future__ import annotations

from pathlib import Path

from r2med.evaluation.advice.advice import SUFFIX
from r2med.evaluation.running.evaluation import slug
from r2med.foundation.core.notices import Setting
from r2med.foundation.store.files import refuse_other_case
from r2med.foundation.store.writable import check_writable


def advice_file(dataset: str, folder: Path) -> Path:
    """Return the file for the advice about a dataset. Raises UserError if it cannot be written."""
    check_writable(folder, Setting("advise", out=...))
    path = folder / f"{slug(dataset)}{SUFFIX}"
    refuse_other_case(path, folder)
    return path
