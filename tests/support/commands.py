"""Type a command in this process, where only what it prints matters."""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from r2med.cli import main
from r2med.cli.app import command
from support.forgotten_modules import forget_modules
from support.processes import Ended, environment

READ_LATE = {"COLUMNS", "OPENAI_API_KEY", "R2MED_HOME", "R2MED_PLUGINS"}
"""Variables that are read when they are used, and not when a module is imported."""
SIGNALS = (signal.SIGINT, signal.SIGTERM)


def typed(*words: object) -> int:
    """Run a command and return its exit code. Its errors are raised."""
    return int(command()([str(word) for word in words], prog_name="r2med", standalone_mode=False) or 0)


def run_here(*words: str | Path, cwd: Path, **changes: str | Path) -> Ended:
    """Run `r2med WORDS` as the command line does, in this process, and return how a process would have ended."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    with _surroundings(words, cwd, environment(**changes)), redirect_stdout(out), redirect_stderr(err):
        code = _exit_code()
    for stream in (out, err):
        stream.flush()
    shown, told = (stream.buffer.getvalue().decode() for stream in (out, err))  # type: ignore[attr-defined]
    return Ended(code, shown, told)


def needs_process(words: tuple[str | Path, ...], given: Mapping[str, object]) -> bool:
    """Return True if a command must run in a process of its own."""
    is_read_at_start = {"R2MED_OFFLINE", "PYTHONPATH"} & os.environ.keys()
    return bool(given.keys() - READ_LATE or is_read_at_start or any("py:" in str(word) for word in words))


def _exit_code() -> int:
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    return 1


@contextmanager
def _surroundings(words: tuple[str | Path, ...], cwd: Path, variables: Mapping[str, str]) -> Iterator[None]:
    """Give a command its words, folder and variables, and take back what it leaves in this process."""
    logger = logging.getLogger("r2med")
    handlers, level, before = [*logger.handlers], logger.level, Path.cwd()
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, variables, clear=True))
        stack.enter_context(patch.object(sys, "argv", ["r2med", *map(str, words)]))
        stack.enter_context(patch.object(sys, "path", [str(cwd), *sys.path]))
        stack.enter_context(patch.object(sys, "stdin", stack.enter_context(Path(os.devnull).open())))
        stack.callback(forget_modules, cwd, frozenset(sys.modules))
        stack.callback(os.chdir, before)
        stack.callback(logger.setLevel, level)
        stack.callback(logger.handlers.__setitem__, slice(None), handlers)
        for number in SIGNALS:
            stack.callback(signal.signal, number, signal.getsignal(number))
        os.chdir(cwd)
        yield
