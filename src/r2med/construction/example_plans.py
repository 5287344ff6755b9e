"""Example plans with their sources. They were written for this project and run offline, with scripted answers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from r2med.data.tables.importing import require_new
from r2med.foundation.core.errors import unknown
from r2med.foundation.store.files import write_atomically

EXAMPLES = ("forum", "exam", "cases")


def write_example_plan(name: str, out: Path) -> Path:
    """Write an example into a new folder and return its plan. Raises UserError if no example has this name."""
    if name not in EXAMPLES:
        raise unknown("example", name, EXAMPLES)
    require_new(out)
    for file in sorted((files("r2med.construction") / "examples" / name).iterdir(), key=lambda file: file.name):
        write_atomically(out / file.name, file.read_bytes())
    return out / "plan.toml"
