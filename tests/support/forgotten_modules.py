"""Let a test import changed modules again, as a new process does."""

import importlib
import sys
from pathlib import Path


def forget_modules(folder: Path) -> None:
    """Forget the modules that were imported from a folder."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and Path(file).is_relative_to(folder):
            del sys.modules[name]
    importlib.invalidate_caches()
