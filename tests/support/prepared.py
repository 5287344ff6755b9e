"""Commands of r2med without the seconds of a start: each is forked from one process that has imported everything.

As a program it takes commands on its input, a line of JSON each, and answers with how each one ended.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from support.processes import PATIENCE, environment

TESTS = Path(__file__).parents[1]
OFFLINE = {"HF_HUB_OFFLINE": "1"}
"""For all of them: the hub's library reads its settings when it is imported."""
_IMPORTED = (
    "rich.console rich.table r2med.cli.app r2med.cli.tables r2med.cli.progress r2med.retrieve.bm25 "
    "r2med.encoders.transformer r2med.encoders.forward r2med.encoders.engines r2med.llm.open r2med.results.batch "
    "r2med.system.system r2med.system.suites "
    "openai torch transformers"
)


class Prepared:
    """The process that forks, as its user sees it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def r2med(self, *arguments: str | Path, cwd: Path, **changes: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `python -m r2med ARGUMENTS` in a folder, in the environment of now."""
        words = [str(argument) for argument in arguments]
        order = {"arguments": words, "cwd": str(cwd), "environment": environment(**OFFLINE | changes)}
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(order), file=self._process.stdin, flush=True)
        assert select.select([self._process.stdout], [], [], PATIENCE)[0], f"r2med {' '.join(words)} hangs"
        answer = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(words, answer["code"], answer["stdout"], answer["stderr"])


@contextmanager
def prepare() -> Iterator[Prepared]:
    """Start it."""
    command, settings, pipe = [sys.executable, "-m", "support.prepared"], environment(**OFFLINE), subprocess.PIPE
    with subprocess.Popen(command, cwd=TESTS, env=settings, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield Prepared(process)
        finally:
            process.kill()


def _main() -> None:
    for name in _IMPORTED.split():
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            child = os.fork()
            if not child:
                _run(json.loads(line), out.fileno(), err.fileno())
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            written = {}
            for name, file in (("stdout", out), ("stderr", err)):
                file.seek(0)
                written[name] = file.read().decode()
        print(json.dumps({"code": code, **written}), flush=True)


def _run(order: dict[str, object], out: int, err: int) -> NoReturn:
    from r2med.cli import main

    code: object = 1
    try:
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        os.environ.clear()
        os.environ.update(order["environment"])  # type: ignore[call-overload]
        os.chdir(str(order["cwd"]))
        sys.path[0] = str(order["cwd"])
        sys.path[1:1] = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
        sys.argv = ["r2med", *order["arguments"]]  # type: ignore[misc]
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    _main()
