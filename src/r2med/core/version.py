"""The version of this package, and a digest of its own source."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

__version__ = "0.3.0"


@cache
def source_digest() -> str:
    """Return a hash of every file of code and data that a number may depend on, so that a record can tell two apart."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*")):
        if file.suffix in (".py", ".toml", ".tsv", ".txt") and file.is_file():
            digest.update(f"{file.relative_to(package).as_posix()}\0".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]
