"""Running r2med as a user does: in a process of its own, with its own environment."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PATIENCE = 600
"""Seconds that nothing takes on the busiest machine: what is waited for as long has hung."""


def wait_for_no_disk() -> None:
    """Let this process and those that are forked from it not wait for the disk.

    No test cuts the power. All tests together would wait for minutes.
    """
    os.fsync = lambda handle: None


@dataclass(frozen=True)
class Ended:
    """How a process ended; a negative code is the signal that killed it."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def messages(self) -> list[str]:
        """The lines on stderr, but for the steps of the progress."""
        return [line for line in self.stderr.splitlines() if line.strip() and not line.startswith("[")]


def environment(**changes: str | Path) -> dict[str, str]:
    """Return the environment of this process without proxies and settings of the hub, changed."""
    inherited = {key: value for key, value in os.environ.items() if "proxy" not in key.lower() and key[:3] != "HF_"}
    return inherited | {"COLUMNS": "200"} | {key: str(value) for key, value in changes.items()}


def python(code: str, *arguments: str | Path, **changes: str | Path) -> Ended:
    """Run Python code to its end."""
    with started(["-c", code, *arguments], **changes) as process:
        return ended(process)


def r2med(*words: str | Path, cwd: Path | None = None, **changes: str | Path) -> Ended:
    """Run `python -m r2med WORDS` to its end, where a start of its own is what counts; else the fixture `r2med`."""
    with started(["-m", "r2med", *words], cwd=cwd, **changes) as process:
        return ended(process)


@contextmanager
def started(
    arguments: Sequence[str | Path], cwd: Path | None = None, **changes: str | Path
) -> Iterator[subprocess.Popen[str]]:
    """Start Python with arguments; it is killed at the end, else a test that failed would wait for it to end."""
    command, settings, pipe = [sys.executable, *map(str, arguments)], environment(**changes), subprocess.PIPE
    with subprocess.Popen(command, cwd=cwd, env=settings, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end of a process."""
    out, err = process.communicate(timeout=PATIENCE)
    return Ended(process.returncode, out, err)


def wait_for(happened: Callable[[], bool]) -> None:
    """Return when it has happened; fail when it does not."""
    limit = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < limit
        time.sleep(0.005)
