"""r2med: how well does a retrieval system reason about medicine?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from r2med.lazy import lazily
from r2med.version import __version__

if TYPE_CHECKING:
    from r2med.data import Corpus, Dataset, Qrels, Query, load
    from r2med.errors import UserError
    from r2med.measure import Measure, score
    from r2med.results import Comparison, Record, Results, compare, evaluate, run
    from r2med.results.report import report
    from r2med.retrieve import Run
    from r2med.setup import Setup
    from r2med.system import System

__all__ = [
    "Comparison",
    "Corpus",
    "Dataset",
    "Measure",
    "Qrels",
    "Query",
    "Record",
    "Results",
    "Run",
    "Setup",
    "System",
    "UserError",
    "__version__",
    "compare",
    "evaluate",
    "load",
    "report",
    "run",
    "score",
]

_MODULES = {
    "r2med.data": ("Corpus", "Dataset", "Qrels", "Query", "load"),
    "r2med.errors": ("UserError",),
    "r2med.measure": ("Measure", "score"),
    "r2med.results": ("Comparison", "Record", "Results", "compare", "evaluate", "run"),
    "r2med.results.report": ("report",),
    "r2med.retrieve": ("Run",),
    "r2med.setup": ("Setup",),
    "r2med.system": ("System",),
}

if os.environ.get("R2MED_OFFLINE"):
    from r2med.net.offline import guard, is_offline

    if is_offline():  # R2MED_OFFLINE=0 means online
        guard()  # before anything is imported that could connect

__getattr__ = lazily(__name__, {name: module for module, names in _MODULES.items() for name in names})


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
