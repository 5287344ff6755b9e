"""The files of a shard of vectors: those of consecutive documents, or of some queries.

A folder has an array for each part of a representation: `vectors`, or `terms` and `weights`. If some text does not have
exactly one row, `offsets` says where the rows of each text begin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from r2med.foundation.core.cost import Cost
from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Artefact
from r2med.foundation.store.files import write_array
from r2med.models.encoders.ragged import Ragged


def read_ragged(folder: Artefact) -> Ragged:
    """Return the vectors in a folder, memory-mapped."""
    arrays = {name: folder.array(name) for name in folder.meta.get("arrays", ["vectors"])}
    if not (folder.path / "offsets.npy").exists():
        offsets = np.arange(len(next(iter(arrays.values()))) + 1, dtype=np.int64)
    else:
        offsets = np.array(folder.array("offsets"))
    return Ragged(arrays, offsets, Cost.from_dict(folder.meta["cost"]))


def check_shape(folder: Artefact, vectors: Ragged, texts: int) -> None:
    """Raise UserError if a folder does not have vectors of this number of texts, as one from a pack may not."""
    array = vectors.arrays.get("vectors")
    are_vectors = array is None or (array.ndim == 2 and array.dtype in (np.float32, np.float16))
    if not are_vectors or len(vectors) != texts:
        raise UserError(f"{folder.path} does not have the vectors of {texts:,} texts; remove it to make them again")


def write_ragged(ragged: Ragged, folder: Path) -> dict[str, Any]:
    """Write vectors into a folder and return what its metadata must say about them."""
    for name, array in ragged.arrays.items():
        write_array(folder / f"{name}.npy", array)
    if not ragged.is_single:
        write_array(folder / "offsets.npy", ragged.offsets)
    names = {"arrays": sorted(ragged.arrays)} if list(ragged.arrays) != ["vectors"] else {}
    return {"cost": ragged.cost.as_dict(), "zeros": ragged.zeros(), **names}
