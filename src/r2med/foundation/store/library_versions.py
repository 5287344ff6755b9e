"""Versions of the libraries that made stored vectors. They are kept with the vectors and stated in records.

They are not part of keys: a new release of a library does not encode a corpus again. A difference is only a note.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from typing import Any

from r2med.foundation.core.version import installed_versions

LIBRARIES = ("torch", "transformers", "sentence-transformers", "openvino")
"""Packages that compute vectors."""

Versions = dict[str, list[str]]
"""Package -> its versions, sorted. There are several if vectors were made at different times."""


_noted: ContextVar[tuple[dict[str, set[str]], ...]] = ContextVar("r2med_versions", default=())
"""The notes of all blocks around the work."""


def versions_of(encoder: object) -> Versions:
    """Return the installed versions of the libraries that an encoder names in `libraries`; empty if it names none."""
    installed, names = installed_versions(), getattr(encoder, "libraries", ())
    return {name: [installed[name]] for name in names if name in installed}


@contextlib.contextmanager
def noted_versions() -> Iterator[dict[str, set[str]]]:
    """Yield the versions behind everything that is made or read inside the block. The block around it gets them too."""
    noted = dict[str, set[str]]()
    token = _noted.set((*_noted.get(), noted))
    try:
        yield noted
    finally:
        _noted.reset(token)


def note_versions(meta: Mapping[str, Any]) -> None:
    """Note the versions in the metadata of an artefact. A pack of others may have anything there."""
    versions = meta.get("versions")
    if not isinstance(versions, dict):
        return
    for name in LIBRARIES:
        if isinstance(each := versions.get(name), list):
            for noted in _noted.get():
                noted.setdefault(name, set()).update(one for one in each if isinstance(one, str))


def joined(some: Versions, others: Versions) -> Versions:
    """Return the versions behind vectors that were made at two times."""
    return {name: sorted({*some.get(name, ()), *others.get(name, ())}) for name in sorted({*some, *others})}


def listed(noted: Mapping[str, set[str]]) -> Versions:
    """Return noted versions, sorted."""
    return {name: sorted(noted[name]) for name in sorted(noted)}


def differing(noted: Mapping[str, set[str]]) -> str:
    """Return the versions that are not installed now, in words; empty if there are none."""
    installed = installed_versions()
    others = {name: sorted(each - {installed.get(name, "")}) for name, each in noted.items()}
    return ", ".join(
        f"{name} {' and '.join(each)} (installed: {installed.get(name, 'none')})"
        for name, each in others.items()
        if each
    )
