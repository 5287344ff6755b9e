"""Running r2med as a user does: in a process of its own, with its own environment."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 120
"""Seconds that nothing takes on the busiest machine: what is waited for as long has hung."""


def environment(**changes: str | Path) -> dict[str, str]:
    """Return the environment of this process without proxies and settings of the hub, changed."""
    inherited = {key: value for key, value in os.environ.items() if "proxy" not in key.lower() and key[:3] != "HF_"}
    return inherited | {"COLUMNS": "200"} | {key: str(value) for key, value in changes.items()}


def python(code: str, *arguments: str | Path, **changes: str | Path) -> subprocess.CompletedProcess[str]:
    return _finished([sys.executable, "-c", code, *map(str, arguments)], changes)


def r2med(*arguments: str | Path, **changes: str | Path) -> subprocess.CompletedProcess[str]:
    return _finished([sys.executable, "-m", "r2med", *map(str, arguments)], changes)


@contextmanager
def started(arguments: Sequence[str | Path], **changes: str | Path) -> Iterator[subprocess.Popen[str]]:
    """Start Python with arguments; it is killed at the end, else a test that failed would wait for it to end."""
    command, pipe = [sys.executable, *map(str, arguments)], subprocess.PIPE
    with subprocess.Popen(command, env=environment(**changes), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(happened: Callable[[], bool]) -> None:
    """Return when it has happened; fail when it does not."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.005)


def _finished(command: list[str], changes: dict[str, str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=environment(**changes), capture_output=True, text=True, timeout=PATIENCE)
