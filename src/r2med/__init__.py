"""r2med: how well does a retrieval system reason about medicine?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from r2med.lazy import lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from r2med.data import Corpus, Dataset, Qrels, Query, load
    from r2med.errors import UserError
    from r2med.measure import Measure, score
    from r2med.results import Record, evaluate
    from r2med.retrieve import Run
    from r2med.system import System

__all__ = [
    "Corpus",
    "Dataset",
    "Measure",
    "Qrels",
    "Query",
    "Record",
    "Run",
    "System",
    "UserError",
    "evaluate",
    "load",
    "score",
]

_PLACES = {
    "r2med.data": ("Corpus", "Dataset", "Qrels", "Query", "load"),
    "r2med.errors": ("UserError",),
    "r2med.measure": ("Measure", "score"),
    "r2med.results": ("Record", "evaluate"),
    "r2med.retrieve": ("Run",),
    "r2med.system": ("System",),
}

__getattr__ = lazily(__name__, {name: place for place, names in _PLACES.items() for name in names})


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
