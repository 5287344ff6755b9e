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

_noted: ContextVar[dict[str, set[str]] | None] = ContextVar("r2med_library_versions", default=None)


def versions_of(encoder: object) -> Versions:
    """Return the installed versions of the libraries that an encoder names in `libraries`; empty if it names none."""
    installed, names = installed_versions(), getattr(encoder, "libraries", ())
    return {name: [installed[name]] for name in names if name in installed}


@contextlib.contextmanager
def noted_versions() -> Iterator[dict[str, set[str]]]:
    """Yield the versions behind everything that is made or read inside the block. The block around it gets them too."""
    outer, inner = _noted.get(), dict[str, set[str]]()
    token = _noted.set(inner)
    try:
        yield inner
    finally:
        _noted.reset(token)
        if outer is not None:
            _add(outer, inner)


def note_versions(meta: Mapping[str, Any]) -> None:
    """Note the versions in the metadata of an artefact. A pack of others may have anything there."""
    versions = meta.get("versions")
    if (noted := _noted.get()) is not None and isinstance(versions, dict):
        known = {name: each for name, each in versions.items() if name in LIBRARIES and isinstance(each, list)}
        _add(noted, {name: {one for one in each if isinstance(one, str)} for name, each in known.items()})


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


def _add(into: dict[str, set[str]], more: Mapping[str, set[str]]) -> None:
    for name, each in more.items():
        into.setdefault(name, set()).update(each)
