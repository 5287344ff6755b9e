"""The version of this package, a digest of its own source, and the versions of the packages that it uses."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path

__version__ = "1.0.0"

PACKAGES = (
    *("numpy", "scipy", "pyarrow", "httpx2"),
    *("torch", "transformers", "sentence-transformers", "openvino", "xllamacpp"),
    *("PyStemmer", "rjieba"),
)
"""Packages whose version can affect a score."""


@cache
def source_digest() -> str:
    """Return a digest of all files of code and data that can affect a score, to distinguish versions in records."""
    package = Path(__file__).parents[2]
    files = (file for file in sorted(package.rglob("*")) if file.suffix in (".py", ".toml", ".tsv", ".txt"))
    return code_files_digest((file.relative_to(package).as_posix(), file) for file in files if file.is_file())[:16]


def code_files_digest(files: Iterable[tuple[str, Path]]) -> str:
    """Return a digest of the names and the bytes of files of code, in the given order."""
    digest = hashlib.sha256()
    for name, file in files:
        digest.update(f"{name}\0".encode() + file.read_bytes())
    return digest.hexdigest()


@cache
def installed_versions() -> dict[str, str]:
    """Return the versions of this package, of Python, and of every installed package that can affect a score."""
    import platform  # not at the top: every command begins with this module
    from importlib import metadata

    versions = {"r2med": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return versions
