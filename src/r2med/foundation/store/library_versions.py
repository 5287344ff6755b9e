"""Versions of the libraries that made stored vectors. They are kept with the vectors and stated in records.

They are not part of keys: a new release of a library does not encode a corpus again. A difference is only a note.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from r2med.foundation.core.events import emit, listener_of, listening_to
from r2med.foundation.core.version import installed_versions

LIBRARIES = ("torch", "transformers", "sentence-transformers", "openvino")
"""Packages that compute vectors."""

Versions = dict[str, list[str]]
"""Package -> its versions, sorted. There are several if vectors were made at different times."""


@dataclass(frozen=True)
class VersionsUsed:
    """Something that certain versions made is used."""

    versions: Mapping[str, set[str]]


def versions_of(encoder: object) -> Versions:
    """Return the installed versions of the libraries that an encoder names in `libraries`; empty if it names none."""
    installed, names = installed_versions(), getattr(encoder, "libraries", ())
    return {name: [installed[name]] for name in names if name in installed}


@contextlib.contextmanager
def noted_versions() -> Iterator[dict[str, set[str]]]:
    """Yield the versions behind everything that is made or read inside the block. The block around it gets them too."""
    outer, noted = listener_of(VersionsUsed), dict[str, set[str]]()

    def note(used: VersionsUsed) -> None:
        for name, each in used.versions.items():
            noted.setdefault(name, set()).update(each)
        if outer is not None:
            outer(used)

    with listening_to(VersionsUsed, note):
        yield noted


def note_versions(meta: Mapping[str, Any]) -> None:
    """Note the versions in the metadata of an artefact. A pack of others may have anything there."""
    versions = meta.get("versions")
    if isinstance(versions, dict):
        known = {name: each for name, each in versions.items() if name in LIBRARIES and isinstance(each, list)}
        emit(VersionsUsed({name: {one for one in each if isinstance(one, str)} for name, each in known.items()}))


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
