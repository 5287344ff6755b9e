"""Note what a block reads from a store: a record states which versions of libraries made it, a pack passes it on.

Versions are not part of keys: a new release of a library does not encode a corpus again. A difference is only a note.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import installed_versions

LIBRARIES = ("torch", "transformers", "sentence-transformers", "openvino")
"""Packages that compute vectors."""

Versions = dict[str, list[str]]
"""Package -> its versions, sorted. There are several if vectors were made at different times."""


@dataclass(eq=False)
class Reads:
    """What was read in a block. It is thread-safe."""

    required: Collection[str] = ()
    """Kinds of artefacts that must not be missing. If there are any, no row may be missing, and rows are noted."""
    searches_again: bool = False
    """True if stored rankings are to be searched again."""
    artefacts: dict[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """(kind, key) of each artefact -> its metadata."""
    rows: dict[Path, set[bytes]] = field(default_factory=dict)
    """File -> keys of its rows."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def versions(self) -> Versions:
        """The versions of the libraries that made the artefacts."""
        return joined(*(meta.get("versions") for meta in self.artefacts.values()))

    def add_artefact(self, kind: str, key: str, meta: Mapping[str, Any] | None) -> None:
        """Note an artefact with its metadata; None if it is missing. Raises UserError if it is required."""
        if meta is None:
            if kind in self.required:
                raise UserError(f"{kind} {key[:8]} is missing in this store")
            return
        with self._lock:
            self.artefacts[kind, key] = meta

    def add_rows(self, file: Path, keys: Sequence[bytes], found: Collection[bytes]) -> None:
        """Note rows of a file. Raises UserError if one is missing."""
        if not self.required:
            return
        wanted = {*keys}
        if missing := len(wanted - {*found}):
            raise UserError(f"{missing:,} of {len(wanted):,} rows of {file.name} are missing in this store")
        with self._lock:
            self.rows.setdefault(file, set()).update(wanted)


_reads: ContextVar[tuple[Reads, ...]] = ContextVar("r2med_reads", default=())


def current_reads() -> tuple[Reads, ...]:
    """Return the reads of all blocks around. Threads do not inherit them."""
    return _reads.get()


@contextlib.contextmanager
def noted_reads(required: Collection[str] = (), *, search_again: bool = False) -> Iterator[Reads]:
    """Yield what is read or made inside the block. The blocks around it get it, too.

    What is required is not made if it is missing: that raises UserError. With `search_again`, stored rankings are
    searched again, so that the vectors behind them are noted.
    """
    reads = Reads(required, search_again)
    token = _reads.set((*_reads.get(), reads))
    try:
        yield reads
    finally:
        _reads.reset(token)


def versions_of(encoder: object) -> Versions:
    """Return the installed versions of the libraries that an encoder names in `libraries`; empty if it names none."""
    installed, names = installed_versions(), getattr(encoder, "libraries", ())
    return {name: [installed[name]] for name in names if name in installed}


def joined(*stated: object) -> Versions:
    """Return the versions that several artefacts state together. A pack of others may state anything."""
    versions: dict[str, set[str]] = {}
    for of_artefact in stated:
        if not isinstance(of_artefact, dict):
            continue
        for name in LIBRARIES:
            if isinstance(of_library := of_artefact.get(name), list):
                versions.setdefault(name, set()).update(text for text in of_library if isinstance(text, str))
    return {name: sorted(versions[name]) for name in sorted(versions)}


def differing(versions: Versions) -> str:
    """Return the versions that are not installed now, in words; empty if there are none."""
    installed = installed_versions()
    earlier = {name: [text for text in texts if text != installed.get(name)] for name, texts in versions.items()}
    return ", ".join(
        f"{name} {' and '.join(texts)} (installed: {installed.get(name, 'none')})"
        for name, texts in earlier.items()
        if texts
    )
