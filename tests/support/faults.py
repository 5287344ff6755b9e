"""What is done to a command before it runs: it is killed at one of its writes, starved of disk, or watched."""

from __future__ import annotations

import functools
import os
import resource
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.fork_server import Fault

WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


def signal_at(step: int, number: signal.Signals, root: Path) -> Fault:
    """A fault: the process gets a signal just before its n-th write below a folder."""
    return functools.partial(_before_each_write, root, functools.partial(_signal_at, step, number))


def killed_after(seconds: float) -> Fault:
    """A fault: the process is killed by another after some seconds, whatever it is at."""
    return functools.partial(_killed_after, seconds)


def tell_process(log: Path) -> Fault:
    """A fault that is none: the number of the process is told in a file, so that a test can kill it."""
    return functools.partial(_tell_process, log)


def tell_writes(root: Path, log: Path) -> Fault:
    """A fault that is none: every write below a folder is told in a file elsewhere."""
    return functools.partial(_before_each_write, root, functools.partial(_tell, log))


def tell_builds(log: Path) -> Fault:
    """A fault that is none: every building of an index is told in a file."""
    return functools.partial(_tell_builds, log)


def files_up_to(size: int) -> Fault:
    """A fault: no file may grow larger, as on a disk that is full. (Python ignores SIGXFSZ, so writes fail.)"""
    return functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


def _tell_process(log: Path) -> None:
    log.write_text(str(os.getpid()))


def _killed_after(seconds: float) -> None:
    victim = os.getpid()
    if not os.fork():
        os.closerange(0, 3)  # else who reads the victim's output would wait for this process
        time.sleep(seconds)
        if os.getppid() == victim:
            os.kill(victim, signal.SIGKILL)
        os._exit(0)


def _before_each_write(root: Path, do: Callable[[str], None]) -> None:
    """Call a function before each write below a folder that Python knows of: opening, moving, deleting, flushing."""
    below = str(root) + os.sep
    flush = os.fsync

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        writes = _opens_to_write(*arguments) if event == "open" else event in WRITES
        if writes and str(arguments[0]).startswith(below):
            do(event)

    def fsync(handle: int) -> None:
        do("fsync")
        flush(handle)

    sys.addaudithook(hook)
    os.fsync = fsync


def _opens_to_write(path: Any, mode: Any, flags: int) -> bool:
    return bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


_steps = 0


def _signal_at(step: int, number: signal.Signals, event: str) -> None:
    global _steps
    _steps += 1
    if _steps == step:
        os.kill(os.getpid(), number)


def _tell(log: Path, event: str) -> None:
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{event}\n".encode())
    os.close(handle)


def _tell_builds(log: Path) -> None:
    from r2med.systems.retrieve.bm25 import index

    build = index._write_segment

    def told(*arguments: Any) -> Any:
        _tell(log, "build")
        return build(*arguments)

    index._write_segment = told
