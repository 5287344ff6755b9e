"""Names of temporary files that contain machine and process, so that leftovers of dead processes can be removed."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ABANDONED_SECONDS = 86_400.0
"""Seconds after which untouched work in progress of other machines is treated as abandoned."""


def process_name() -> str:
    """Return a new name that identifies this machine and this process."""
    return f"{_machine()}~{os.getpid()}~{uuid.uuid4().hex[:8]}"


def stale(folder: Path, prefix: str = "") -> Iterator[Path]:
    """Yield the paths named `prefix` + `process_name()` of dead processes."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(prefix) and is_dead(path.name.removeprefix(prefix)):
            yield path


def stale_work(folder: Path, name: str = "") -> Iterator[Path]:
    """Yield the paths named NAME.`process_name()` of dead processes. Without a name, all names match."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        stem, _, owner = path.name.partition(".")
        if stem == (name or stem) and is_dead(owner):
            yield path


def abandoned(folder: Path) -> Iterator[Path]:
    """Yield work in progress of other machines or containers that has not been changed for a day."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        owner = path.name.rpartition(".")[2]
        if is_owner(owner) and _process_here(owner) is None and _idle_seconds(path) > ABANDONED_SECONDS:
            yield path


def is_dead(owner: str) -> bool:
    """Return True if the process of this name is known to be dead. Nothing is known about other machines."""
    process = _process_here(owner)
    return process is not None and not _alive(process)


def is_owner(name: str) -> bool:
    """Return True if this is a name made by `process_name()`."""
    return re.fullmatch("[^~]+~[0-9]{1,9}~[0-9a-f]{8}", name) is not None


def lives_here(owner: str) -> bool:
    """Return True if the process of this name runs on this machine."""
    process = _process_here(owner)
    return process is not None and _alive(process)


def place_of(owner: str) -> str:
    """Return the process and the host of this name, for messages."""
    machine, _, process = owner.rpartition("~")[0].rpartition("~")
    return f"process {process} on {machine.rpartition('-')[0]}"


def _process_here(owner: str) -> int | None:
    """Return the id of the process of this name if it belongs to this machine, otherwise None.

    Only the hash is compared, because the host name may have changed.
    """
    machine, _, process = owner.rpartition("~")[0].rpartition("~")
    known = re.fullmatch("[A-Za-z0-9_-]+", machine) is not None
    here = known and machine.rpartition("-")[2] == _machine().rpartition("-")[2]
    return int(process) if here and re.fullmatch("[0-9]{1,9}", process) else None


def _idle_seconds(path: Path) -> float:
    """Return the seconds since anything in a folder was written; 0 if it cannot be read."""
    try:
        files = [path, *path.rglob("*")]
        return time.time() - max(each.lstat().st_mtime for each in files)
    except OSError:
        return 0.0


@cache
def _machine() -> str:
    """Return a name for all processes that see each other's process ids.

    The host name is not enough: two containers may share it, and each would treat the other's work as that of a dead
    process. The boot id of the kernel and the namespace of process ids distinguish them.
    """
    host = re.sub(r"[^A-Za-z0-9-]", "_", platform.node())[:32]
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        namespace = str(Path("/proc/self/ns/pid").readlink())
    except OSError:  # not Linux: there are no namespaces, and hosts differ in their network cards
        boot, namespace = hex(uuid.getnode()), ""
    return f"{host}-{hashlib.sha256(f'{boot} {namespace}'.encode()).hexdigest()[:8]}"


def _alive(process: int) -> bool:
    if os.name == "nt":  # pragma: no cover - signal 0 would be a Ctrl-C there, so no process is treated as dead
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, but belongs to another user
        return True
    return True
