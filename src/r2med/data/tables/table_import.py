"""Write the dataset of planned tables into its folder, and load it."""

from __future__ import annotations

from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.loading import load_dataset
from r2med.data.tables.imported_folder import removed_texts, require_imported
from r2med.data.tables.importing import UPDATE_ADVICE, Import, require_new
from r2med.foundation.store import Store


def check_folder(folder: Path, update: bool) -> None:
    """Raise UserError if the folder exists already. With `update`, it may be that of an earlier import."""
    if not (update and require_imported(folder)):
        require_new(folder, UPDATE_ADVICE)


def write_import(plan: Import, folder: Path, store: Store, update: bool = False) -> Dataset:
    """Write the dataset and load it. Texts that an update removes leave the store, too."""
    check_folder(folder, update)
    with removed_texts(folder, store):
        plan.write(folder, update=update)
    return load_dataset(folder, store)
