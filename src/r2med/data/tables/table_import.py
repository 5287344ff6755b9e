"""Import tables and load the dataset: `import_tables`, the Python form of `r2med data import`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from r2med.data.dataset import Dataset
from r2med.data.loading import load
from r2med.data.tables.imported_folder import removed_texts, require_imported
from r2med.data.tables.importing import UPDATE_ADVICE, plan_import, require_new
from r2med.foundation.core.one_or_many import several
from r2med.foundation.store import default_store


def import_tables(
    files: Path | str | Sequence[Path | str], out: Path | str, *, update: bool = False, **how: Any
) -> Dataset:
    """Make a dataset from tables, like `r2med data import` but without questions to the user, and return it.

    `how` are the arguments of `plan_import`: column names by role (id, text, title, query, relevant, …), header,
    skip_rows and sheets. Columns that are not named are guessed. With `update`, the dataset of an earlier import is
    replaced. Raises UserError if a file cannot be read, or if the folder holds anything else.
    """
    folder = Path(out)
    if not (update and require_imported(folder)):
        require_new(folder, UPDATE_ADVICE)
    store = default_store()
    with removed_texts(folder, store):
        plan_import(several(files), **how).write(folder, update=update)
    return load(folder, store)
