"""Write the dataset of planned tables into its folder, and load it."""

from __future__ import annotations

import logging
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.data.loading import load_dataset
from r2med.data.tables.import_choices import NO_CHOICES, ImportChoices
from r2med.data.tables.imported_folder import removed_texts, require_imported
from r2med.data.tables.importing import UPDATE_ADVICE, Import, card_language, require_new
from r2med.foundation.store import Store

log = logging.getLogger("r2med")


def earlier_choices(folder: Path, update: bool) -> ImportChoices:
    """Return the choices of the import that made the folder, which an update uses again.

    Raises UserError if the folder exists already. With `update`, it may be that of an earlier import.
    """
    earlier = require_imported(folder) if update else None
    if earlier is None:
        require_new(folder, UPDATE_ADVICE)
        return NO_CHOICES
    choices = earlier.choices.model_copy(update={"language": card_language(folder) or earlier.choices.language})
    log.info("columns and flags of the earlier import are used again, unless you name others: %s", choices.words)
    return choices


def write_import(plan: Import, folder: Path, store: Store, update: bool = False) -> Dataset:
    """Write the dataset and load it. Texts that an update removes leave the store, too."""
    with removed_texts(folder, store):
        plan.write(folder, update=update)
    return load_dataset(folder, store)
