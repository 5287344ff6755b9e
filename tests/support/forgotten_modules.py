"""Let a test import changed modules again, as a new process does."""

import importlib
import os
import sys
from collections.abc import Collection
from pathlib import Path


def forget_modules(folder: Path, known: Collection[str] = ()) -> None:
    """Forget the modules that were imported from a folder, but for those that were known before."""
    inside = f"{folder}{os.sep}"
    for name in sys.modules.keys() - known:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(inside):
            del sys.modules[name]
    importlib.invalidate_caches()
