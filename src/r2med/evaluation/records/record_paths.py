"""The paths of a record and of the files beside it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from r2med.evaluation.records.record import APART_SUFFIX

LONGEST = 140
"""Maximum number of bytes of a system's name in a file name. A file name has at most 255 bytes. It also contains a key,
a suffix and, during writing, the names of machine and process."""


class FilesBeside(NamedTuple):
    """The paths of the files that a record can have beside it."""

    run: Path
    """The rankings."""
    traces: Path
    """The conversations of search agents."""
    generated: Path
    """The texts that an expansion wrote."""


def record_path(out: Path, name: str, dataset: str, key: str, apart: str = "") -> Path:
    """Return the path of the record of a system that tables show by a name.

    The key in the file name distinguishes records with different settings.
    A record that is set `apart` has a name by which no board or comparison finds it.
    """
    ending = APART_SUFFIX if apart else ".json"
    return out.joinpath(*map(slug, dataset.split("/")), f"{slug(name)}-{key[:10]}{ending}")


def files_beside(path: Path) -> FilesBeside:
    """Return the paths of the files beside the record of a path."""
    return FilesBeside(*map(path.with_suffix, (".trec.gz", ".traces.json", ".generated.jsonl")))


def slug(name: str, size: int = LONGEST) -> str:
    """Return a name that can begin a file name, with at most `size` bytes. Other characters become underscores."""
    words = re.sub(r"[^\w.+=-]+", "_", name).strip("_.") or "unnamed"
    return words.encode()[:size].decode(errors="ignore")
