"""Texts whose representations have different sizes: a vector for each token, or a weight for some terms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.cost import Cost
from r2med.models.encoders.encoder import Role

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Ragged:
    """Some rows for each text, one text after the other, in one or several arrays of the same length."""

    arrays: Mapping[str, npt.NDArray[Any]]
    offsets: Offsets
    """Where the rows of each text begin, and where those of the last one end."""
    cost: Cost = field(default_factory=Cost)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def rows(self, name: str, text: int) -> npt.NDArray[Any]:
        """Return the rows of one text in one of the arrays."""
        return self.arrays[name][self.offsets[text] : self.offsets[text + 1]]


class RaggedEncoder(Protocol):
    """A model that gives each text as many rows as it needs."""

    shards_in: ClassVar[str]
    """The folder of the store for what it makes of documents."""

    def key(self, role: Role) -> dict[str, Any]:
        """Return all that the rows of a role depend on."""

    def encode_ragged(self, texts: Sequence[str], role: Role) -> Ragged:
        """Return the rows of each text, in their order."""


def joined(parts: Sequence[Mapping[str, npt.NDArray[Any]]], cost: Cost) -> Ragged:
    """Return the rows of texts that were encoded one by one."""
    sizes = [len(next(iter(part.values()))) for part in parts]
    arrays = {name: np.concatenate([part[name] for part in parts]) for name in (parts[0] if parts else ())}
    return Ragged(arrays, np.append(np.int64(0), np.cumsum(sizes, dtype=np.int64)), cost)
