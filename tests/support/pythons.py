"""The versions of Python that are installed on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = 11
NEWEST = 20
"""Minor versions that are looked for; those that do not exist yet are not found."""


def other_pythons() -> list[str]:
    """Return one interpreter of each Python from 3.11 on, except the version that runs this."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found = []
    for minor in range(OLDEST, NEWEST):
        if minor == sys.version_info.minor:
            continue
        name = f"python3.{minor}"
        candidates = [shutil.which(name), *map(str, sorted(versions.glob(f"3.{minor}.*/bin/{name}")))]
        found += [python for python in candidates if python and _runs(python)][:1]
    return found


def _runs(python: str) -> bool:
    """Return False for a name without an interpreter behind it, such as a shim of a version manager."""
    return subprocess.run([python, "-c", "import venv, zlib"], capture_output=True).returncode == 0
