"""Where evaluations are disturbed: a store and a results folder of their own, and what is in them at the end."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TIMES = {"created", "named", "timings", "checksum"} | {
    "seconds",
    "encoder_seconds",
    "seconds_per_query",
}


@dataclass(frozen=True)
class Workspace:
    """A store and a results folder of their own."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def out(self) -> Path:
        return self.root / "out"

    def outcome(self) -> dict[str, Any]:
        """Every file of the results folder: records without what may differ between two runs, and runs as bytes."""
        files = sorted(path for path in self.out.rglob("*") if path.is_file())
        return {str(path.relative_to(self.out)): _content(path) for path in files}

    def leftovers(self) -> list[str]:
        """Files and folders of work in progress, as `held` of store/sharing.py names them.

        A process that is killed while it makes a folder may leave an empty one without a name, which nobody misses.
        """
        paths = [path for folder in (self.home, self.out) for path in folder.rglob("*")]
        return [str(path) for path in paths if re.fullmatch(r"\..+\.[0-9a-f]{32}\.tmp", path.name)]


def _content(path: Path) -> Any:
    if path.suffix != ".json":
        return path.read_bytes()
    return _lasting(json.loads(path.read_bytes()))


def _lasting(value: Any) -> Any:
    """Return a part of a record without its times, which no two runs share."""
    if isinstance(value, list):
        return [_lasting(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _lasting(part) for name, part in value.items() if name not in TIMES}
