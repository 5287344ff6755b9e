"""Evaluations to disturb: the command line in a child process that is killed, starved or set against its like.

A child is forked from a server that has imported everything, so that a sweep over every write of a run takes
seconds. It runs `r2med.cli.main` as `python -m r2med` does. What is done to it is a fault: a function called in
the child before the run.
"""

from __future__ import annotations

import atexit
import functools
import io
import json
import multiprocessing
import os
import random
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from support.processes import PATIENCE

Fault = Callable[[], None]

_FORKED = multiprocessing.get_context("forkserver")
_PRELOADED = (
    "pytest rich.console rich.table r2med.cli.app r2med.cli.tables r2med.cli.progress r2med.cli.plan "
    "r2med.retrieve.bm25 r2med.results.batch r2med.system.system r2med.system.suites"
)
_FORKED.set_forkserver_preload([*_PRELOADED.split(), __name__])

TIMES = {"created", "timings", "checksum", "seconds", "seconds_per_query"}
WRITES = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


@dataclass(frozen=True)
class Place:
    """A store and a results folder of their own."""

    root: Path

    @property
    def home(self) -> Path:
        return self.root / "home"

    @property
    def out(self) -> Path:
        return self.root / "out"

    def outcome(self) -> dict[str, Any]:
        """Every file of the results folder: records without what may differ between two runs, and runs as bytes."""
        files = sorted(path for path in self.out.rglob("*") if path.is_file())
        return {str(path.relative_to(self.out)): _content(path) for path in files}

    def leftovers(self) -> list[str]:
        """Whatever is not a finished file."""
        paths = [path for folder in (self.home, self.out) for path in folder.rglob("*")]
        return [str(path) for path in paths if "~" in path.name]


@dataclass(frozen=True)
class Ended:
    """How a process ended; a negative code is the signal that killed it."""

    code: int
    stdout: str
    stderr: str

    @property
    def messages(self) -> list[str]:
        """The lines on stderr, but for the steps of the progress."""
        return [line for line in self.stderr.splitlines() if line.strip() and not line.startswith("[")]


def start(place: Place, *words: str | Path) -> subprocess.Popen[str]:
    """Start `python -m r2med WORDS`, the real thing."""
    command = [sys.executable, "-m", "r2med", *map(str, words)]
    environment = {**os.environ, "R2MED_HOME": str(place.home)}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True)


def ended(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end of the real thing."""
    out, err = process.communicate(timeout=PATIENCE)
    return Ended(process.returncode, out, err)


class Child:
    """`r2med WORDS` in a forked child, with a fault."""

    def __init__(self, place: Place, *words: str | Path, fault: Fault | None = None) -> None:
        self._answer, theirs = _FORKED.Pipe(duplex=False)
        self._process = _FORKED.Process(target=_child, args=(place, [*map(str, words)], fault, theirs))
        self._process.start()
        theirs.close()

    def ended(self) -> Ended:
        """Wait for its end."""
        try:
            answer: Ended | None = self._answer.recv() if self._answer.poll(PATIENCE) else None
        except EOFError:  # killed
            answer = None
        self._process.join(PATIENCE)
        code = self._process.exitcode
        assert code is not None, "a child hangs"
        return answer if answer is not None else Ended(code, "", "")


def run(place: Place, *words: str | Path, fault: Fault | None = None) -> Ended:
    """Run `r2med WORDS` in a forked child to its end."""
    return Child(place, *words, fault=fault).ended()


def together(children: Iterable[Child]) -> list[Ended]:
    """Start several at once and wait for all."""
    return [child.ended() for child in list(children)]


def signal_at(step: int, number: signal.Signals, root: Path) -> Fault:
    """A fault: the process gets a signal just before its n-th write below a folder."""
    return functools.partial(_before_each_write, root, functools.partial(_signal_at, step, number))


def tell_writes(root: Path, log: Path) -> Fault:
    """A fault that is none: every write below a folder is told in a file elsewhere."""
    return functools.partial(_before_each_write, root, functools.partial(_tell, log))


def tell_builds(log: Path) -> Fault:
    """A fault that is none: every building of an index is told in a file."""
    return functools.partial(_tell_builds, log)


def files_up_to(size: int) -> Fault:
    """A fault: no file may grow larger, as on a disk that is full. (Python ignores SIGXFSZ, so writes fail.)"""
    return functools.partial(resource.setrlimit, resource.RLIMIT_FSIZE, (size, size))


def write_dataset(folder: Path, documents: int, queries: int = 5) -> Path:
    """Write an R2MED folder of random words, the same for the same sizes."""
    chance = random.Random(documents)
    words = ["".join(chance.choices("abcdefghiklmnoprstu", k=chance.randint(3, 9))) for _ in range(3000)]
    texts = [" ".join(chance.choices(words, k=60)) for _ in range(documents)]
    asked = [(f"q{i}", chance.randrange(documents)) for i in range(queries)]
    folder.mkdir(parents=True)
    _write_jsonl(folder / "corpus.jsonl", [{"id": f"d{i}", "text": text} for i, text in enumerate(texts)])
    _write_jsonl(folder / "query.jsonl", [{"id": q, "text": " ".join(texts[row].split()[:8])} for q, row in asked])
    _write_jsonl(folder / "qrels.jsonl", [{"q_id": q, "p_id": f"d{row}", "score": 1} for q, row in asked])
    return folder


def _write_jsonl(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _content(path: Path) -> Any:
    if path.suffix != ".json":
        return path.read_bytes()
    return _lasting(json.loads(path.read_bytes()))


def _lasting(value: Any) -> Any:
    """Return a part of a record without its times, which no two runs share."""
    if isinstance(value, list):
        return [_lasting(part) for part in value]
    if not isinstance(value, dict):
        return value
    return {name: _lasting(part) for name, part in value.items() if name not in TIMES}


def _child(place: Place, words: list[str], fault: Fault | None, answer: Connection) -> None:
    from r2med.cli import main

    os.environ["R2MED_HOME"] = str(place.home)
    sys.argv = ["r2med", *words]
    out, err = io.StringIO(), io.StringIO()
    sys.stdout, sys.stderr = out, err
    if fault is not None:
        fault()
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        code = 1
        traceback.print_exc()
    atexit._run_exitfuncs()  # a forked child leaves without them
    answer.send(Ended(code, out.getvalue(), err.getvalue()))


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
    from r2med.retrieve.bm25 import index

    build = index.build_segment

    def told(*arguments: Any) -> Any:
        _tell(log, "build")
        return build(*arguments)

    index.build_segment = told
