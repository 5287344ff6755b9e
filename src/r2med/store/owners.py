"""Whose work in progress: temporary names carry host and process, so that what the dead left can be removed."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Iterator
from pathlib import Path


def own_name() -> str:
    """Return a new name that tells which process it belongs to."""
    return f"{_host()}~{os.getpid()}~{uuid.uuid4().hex[:8]}"


def left_behind(folder: Path, prefix: str = "") -> Iterator[Path]:
    """Yield what is named `prefix` + `own_name()` of a process that is gone; other machines' work is theirs."""
    if not folder.is_dir():
        return
    for path in list(folder.iterdir()):
        owner = path.name.removeprefix(prefix) if path.name.startswith(prefix) else ""
        if is_dead(owner):
            yield path


def work_left_behind(folder: Path) -> Iterator[Path]:
    """Yield what is named ANYTHING.`own_name()` of a process that is gone."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if is_dead(path.name.partition(".")[2]):
            yield path


def is_dead(owner: str) -> bool:
    """Return whether the process that `own_name()` named is gone; of other machines' nothing is known."""
    host, _, rest = owner.rpartition("~")[0].rpartition("~")
    return host == _host() and rest.isdecimal() and not _alive(int(rest))


def _host() -> str:
    return platform.node().replace("/", "_")


def _alive(process: int) -> bool:
    if os.name == "nt":  # pragma: no cover - signal 0 would be a Ctrl-C there, so nobody is taken for dead
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it lives, but is somebody else's
        return True
    return True
