"""Where the files of an evaluation lie: names that a person can read, and that every file system takes."""

from __future__ import annotations

import re
from pathlib import Path

from r2med.data import Dataset
from r2med.system import System

LONGEST = 140
"""Bytes of a system's name in the name of a file, of which 255 are allowed: a key and an ending come after it, and
while a file is written, the names of machine and process.
"""


def record_path(out: Path, system: System, dataset: Dataset, key: str) -> Path:
    """Return where a record goes: readable names, and the key that keeps different settings apart."""
    name = slug(system.name).encode()[:LONGEST].decode(errors="ignore")
    return out.joinpath(*map(slug, dataset.name.split("/")), f"{name}-{key[:10]}.json")


def run_path(path: Path) -> Path:
    """Return where the run of a record goes."""
    return path.with_suffix(".trec.gz")


def traces_path(path: Path) -> Path:
    """Return where the conversations of a search agent go."""
    return path.with_suffix(".traces.json")


def slug(name: str) -> str:
    """Return a name without what is awkward in a file's."""
    return re.sub(r"[^\w.+=-]+", "_", name).strip("_.") or "unnamed"
