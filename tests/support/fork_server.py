"""Run r2med's command line without the seconds of a start: each command is forked from a process that imported all.

As a program it listens on a socket. Whoever connects sends one `Order`, which runs in a child of its own, and gets
back how the child `Ended`; any number may run at once. A fault (see `support.faults`) is called in the child before
the command, which then runs as `python -m r2med` does.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Client, Connection, wait
from pathlib import Path
from typing import Any, NoReturn

from support.processes import PATIENCE, Ended, environment, wait_for_no_disk

TESTS = Path(__file__).parents[1]
OFFLINE = {"HF_HUB_OFFLINE": "1"}
"""For all commands: the hub's library reads its settings when it is imported."""
LIBRARIES = (
    "rich.console rich.table httpx2 pandas torch scipy.stats transformers.modeling_utils "
    "transformers.models.bert.modeling_bert sentence_transformers support.faults".split()
)
"""What r2med's modules, or libraries of theirs, import only where it is used; some take seconds."""

Fault = Callable[[], None]
Command = Callable[..., Ended]
"""What runs `r2med WORDS` to its end: the fixture `r2med`."""


@dataclass(frozen=True)
class Order:
    """A command, where it runs, and what is done to it before."""

    words: tuple[str, ...]
    cwd: Path
    environment: dict[str, str]
    fault: Fault | None


class Running:
    """A command that runs in a forked child."""

    def __init__(self, order: Order, server: Connection) -> None:
        self._order = order
        self._server = server
        server.send(order)

    def has_ended(self) -> bool:
        return self._server.poll()

    def ended(self, patience: float = PATIENCE) -> Ended:
        """Wait for its end."""
        with self._server:
            assert self._server.poll(patience), f"r2med {' '.join(self._order.words)} hangs"
            answer = self._server.recv()
            assert isinstance(answer, Ended)
            return answer


def together(commands: Iterable[Running]) -> list[Ended]:
    """Start several commands at once and wait for all."""
    return [command.ended() for command in list(commands)]


@dataclass(frozen=True)
class ForkServer:
    """The process that forks, as its user sees it."""

    address: str

    def start(
        self, *words: str | Path, cwd: Path | None = None, fault: Fault | None = None, **changes: str | Path
    ) -> Running:
        """Start `r2med WORDS` in a folder, in the environment of now with some changes."""
        settings = environment(**OFFLINE | changes)
        order = Order(tuple(map(str, words)), cwd or Path.cwd(), settings, fault)
        return Running(order, Client(self.address))

    def run(
        self, *words: str | Path, cwd: Path | None = None, fault: Fault | None = None, **changes: str | Path
    ) -> Ended:
        """Run `r2med WORDS` to its end."""
        return self.start(*words, cwd=cwd, fault=fault, **changes).ended()


@contextmanager
def started_fork_server() -> Iterator[ForkServer]:
    """Start the process that forks; it takes orders at once, and follows them when it has imported everything."""
    with tempfile.TemporaryDirectory() as folder:
        address = str(Path(folder) / "orders")
        command = [sys.executable, "-c", "from support.fork_server import serve; serve()", address]
        settings = environment(**OFFLINE)
        with subprocess.Popen(command, cwd=TESTS, env=settings, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None and process.stdout.readline(), "the fork server does not start"
                yield ForkServer(address)
            finally:
                process.kill()


def serve() -> None:
    """Follow orders at the address that the command line names, until killed."""
    with socket.socket(socket.AF_UNIX) as orders:
        orders.bind(sys.argv[1])
        orders.listen(100)
        print("listening", flush=True)
        _import_everything()
        wait_for_no_disk()
        sys.dont_write_bytecode = True  # of what tests write: Python does not notice a change within the same second
        gc.collect()
        gc.freeze()  # else the first collection in each child would copy all that was imported
        children: dict[int, _Child] = {}
        while True:
            for ready in wait([orders, *children]):
                if ready is orders:
                    child = _Child.forked(Connection(orders.accept()[0].detach()))
                    children |= dict.fromkeys(child.written, child)
                elif children[ready].read(ready):
                    del children[ready]


def _import_everything() -> None:
    import r2med

    for module in pkgutil.walk_packages(r2med.__path__, "r2med."):
        # A bridge is imported by whoever has its other side installed, and by no command.
        if not module.name.endswith("__main__") and not module.name.startswith("r2med.publication.bridges."):
            importlib.import_module(module.name)
    for name in LIBRARIES:
        importlib.import_module(name)
    for kept in (
        r2med.cli.app.command,
        r2med.foundation.core.version.installed_versions,
        r2med.foundation.core.version.source_digest,
    ):
        kept()
    for kept in _installed_plugins():
        kept()
    # What the imported libraries would tidy up at the end takes each child longer than most commands.
    weakref.finalize._registry.clear()


def _installed_plugins() -> tuple[Any, ...]:
    """Return the two functions that look into every installed package, and keep what they saw."""
    from r2med.foundation.core import names

    return names._installed_packages, names._installed_stages


@dataclass
class _Child:
    """A command that runs: who waits for it, and what it wrote to each of its pipes."""

    pid: int
    client: Connection
    written: dict[int, bytes]
    unread: int = 2

    @classmethod
    def forked(cls, client: Connection) -> _Child:
        """Follow an order in a child. It is read there, so that what a fault imports stays out of this process."""
        sent = client.recv_bytes()
        (out, to_out), (err, to_err) = os.pipe(), os.pipe()
        pid = os.fork()
        if not pid:
            _follow(sent, to_out, to_err)
        os.close(to_out)
        os.close(to_err)
        return cls(pid, client, {out: b"", err: b""})

    def read(self, pipe: int) -> bool:
        """Read from a pipe, and tell the client of the end when both have ended; return whether this one has."""
        if part := os.read(pipe, 1 << 16):
            self.written[pipe] += part
            return False
        os.close(pipe)
        self.unread -= 1
        if not self.unread:
            code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            out, err = (part.decode() for part in self.written.values())
            with self.client, suppress(BrokenPipeError):  # who asked may have gone
                self.client.send(Ended(code, out, err))
        return True


def _follow(sent: bytes, out: int, err: int) -> NoReturn:
    from r2med.cli import main

    code: object = 1
    try:
        signal.alarm(2 * PATIENCE)  # what hangs ends, also when nobody waits for it any more
        for source, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        sys.stdin = os.fdopen(0, closefd=False)
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)
        order: Order = pickle.loads(sent)  # noqa: S301  # of our own tests
        os.environ.clear()
        os.environ.update(order.environment)
        os.chdir(order.cwd)
        sys.path[0] = str(order.cwd)
        added = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in sys.path]
        if any(added):
            sys.path[1:1] = added
            names = sys.modules["r2med.foundation.core.names"]
            for kept in (*_installed_plugins(), names._raw_cards):
                kept.cache_clear()
        sys.argv = ["r2med", *order.words]
        if order.fault is not None:
            order.fault()
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
    finally:
        atexit._run_exitfuncs()  # a forked child leaves without them
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)
