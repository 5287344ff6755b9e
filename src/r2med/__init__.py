"""r2med: how well does a retrieval system reason about medicine?"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from r2med.core.lazy import lazily
from r2med.core.version import __version__

if TYPE_CHECKING:
    from r2med.comparison.comparison import Comparison, compare
    from r2med.comparison.report import report
    from r2med.core.errors import UserError
    from r2med.data import Corpus, Dataset, Qrels, Query, load
    from r2med.evaluation.batch import run
    from r2med.evaluation.evaluation import evaluate
    from r2med.evaluation.results import Results
    from r2med.measure import Measure, score
    from r2med.records.record import Record
    from r2med.retrieve import Run
    from r2med.runtime.setup import Setup
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
    "r2med.core.errors": ("UserError",),
    "r2med.measure": ("Measure", "score"),
    "r2med.comparison.comparison": ("Comparison", "compare"),
    "r2med.evaluation.batch": ("run",),
    "r2med.evaluation.evaluation": ("evaluate",),
    "r2med.evaluation.results": ("Results",),
    "r2med.records.record": ("Record",),
    "r2med.comparison.report": ("report",),
    "r2med.retrieve": ("Run",),
    "r2med.runtime.setup": ("Setup",),
    "r2med.system": ("System",),
}

if os.environ.get("R2MED_OFFLINE"):
    from r2med.net.offline import guard, is_offline

    if is_offline():  # R2MED_OFFLINE=0 means online
        guard()  # before anything is imported that could connect

__getattr__ = lazily(__name__, {name: module for module, names in _MODULES.items() for name in names})


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
