"""The manifest of an artefact: size and SHA-256 of its files, and the check that they are still the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from r2med.foundation.store.files import digest, file_state, sha256, sync, write_atomically

MANIFEST, STAMP = "manifest.json", "stamp.json"


class DamagedError(Exception):
    """The files of an artefact differ from its manifest."""


def seal(folder: Path, meta: dict[str, Any]) -> None:
    """Write the manifest of a folder: size and SHA-256 of every file, after all of them are on the disk."""
    paths = sorted(path for path in folder.iterdir() if path.is_file())
    with ThreadPoolExecutor() as threads:  # disks flush while cores hash
        flushed = threads.map(sync, paths)
        hashes = list(threads.map(sha256, paths))
        list(flushed)  # raises the errors of the threads
    files = {path.name: {"size": path.stat().st_size, "sha256": sha} for path, sha in zip(paths, hashes, strict=True)}
    for path in paths:
        path.chmod(0o600)
    body = {"files": files, "meta": meta}
    write_atomically(folder / MANIFEST, json.dumps({**body, "check": digest(body)}, indent=1).encode(), private=True)
    write_stamp(folder, {name: file_state(folder / name) for name in files})
    sync(folder)


def write_stamp(folder: Path, states: dict[str, list[int]]) -> None:
    """Write the states of files that were checked."""
    write_atomically(folder / STAMP, json.dumps(states).encode(), private=True)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest of a folder. Raises DamagedError if it is missing or was changed."""
    try:
        manifest: dict[str, Any] = json.loads((path / MANIFEST).read_bytes())
        sound = manifest["check"] == digest({"files": manifest["files"], "meta": manifest["meta"]})
    except (OSError, ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise DamagedError("its manifest is missing or altered")
    return manifest


def check_files(path: Path, files: dict[str, Any], trusted: dict[str, Any]) -> dict[str, list[int]]:
    """Return the states of the files before they were read. Raises DamagedError for the first wrong file."""
    seen = {}
    for name, expected in files.items():
        try:
            state = seen[name] = file_state(path / name)
        except OSError:
            raise DamagedError(f"{name} is missing") from None
        if state[0] != expected["size"]:
            raise DamagedError(f"{name} has {state[0]} bytes instead of {expected['size']}")
        if trusted.get(name) != state and sha256(path / name) != expected["sha256"]:
            raise DamagedError(f"{name} was altered")
    return seen
