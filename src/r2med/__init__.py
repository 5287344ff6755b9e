"""r2med: how well does a retrieval system reason about medicine?"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from r2med.data import Corpus, Dataset, Qrels, Query, load
    from r2med.errors import UserError
    from r2med.measure import Measure, score
    from r2med.results import Record, evaluate
    from r2med.retrieve import Run
    from r2med.system import System

# Name -> where it lives. Resolved on first use, so that `import r2med` costs nothing.
_API = {
    "Corpus": "r2med.data",
    "Dataset": "r2med.data",
    "Measure": "r2med.measure",
    "Qrels": "r2med.data",
    "Query": "r2med.data",
    "Record": "r2med.results",
    "Run": "r2med.retrieve",
    "System": "r2med.system",
    "UserError": "r2med.errors",
    "evaluate": "r2med.results",
    "load": "r2med.data",
    "score": "r2med.measure",
}

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


def __getattr__(name: str) -> Any:
    if name not in _API:
        raise AttributeError(f"module 'r2med' has no attribute {name!r}")
    return getattr(import_module(_API[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_API])
