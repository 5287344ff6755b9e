"""What every test stands on: a store of its own, and nothing of the user's surroundings."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from r2med.foundation.store import Store
from support import chat_server as chat
from support import embedding_server as embedding
from support import room_coverage
from support.fork_server import Command, ForkServer, started_fork_server
from support.keys import KEY
from support.processes import Ended, wait_for_no_disk
from support.workspaces import Workspace

# A busy machine may take any time for an example; that is no fault of what is tested.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("by-day", settings.get_profile("any-machine"), max_examples=25)
settings.load_profile("any-machine")

SHARED = pytest.StashKey[ForkServer]()


def pytest_configure(config: pytest.Config) -> None:
    """Set what the programs under test inherit: Ctrl-C reaches them, and models compute in one thread each."""
    if config.getoption("markexpr") == "not slow":
        settings.load_profile("by-day")
    if folder := os.environ.get(room_coverage.VARIABLE):
        config.pluginmanager.register(room_coverage.Measurement(config.rootpath / folder))
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # for models this small, threads only wait for each other
    wait_for_no_disk()
    # A process in the background ignores Ctrl-C.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collectstart() -> None:
    """Look for no garbage until all tests are imported."""
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that hold slow tests, so that at the end no worker is left alone with one."""
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_collection_finish() -> None:
    """Keep what was imported out of every search for garbage, which takes half a second with it.

    Keep no bytecode of what tests write and import: Python does not notice a change within the same second.
    """
    gc.enable()
    gc.collect()
    gc.freeze()
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's cache, plugins and current folder, which may hold results, out of every test."""
    folder = tmp_path / "r2med-home"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("R2MED_HOME", str(folder))
    monkeypatch.delenv("R2MED_PLUGINS", raising=False)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """A store and a results folder apart from the test's others."""
    return Workspace(tmp_path / "workspace")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the workers of xdist one fork server for all: to import everything takes it ten seconds."""
    if find_spec("r2med.cli") is None or find_spec("torch") is None:  # early floors are tested alone
        return
    if SHARED not in node.config.stash:
        running = ExitStack()
        node.config.stash[SHARED] = running.enter_context(started_fork_server())
        node.config.add_cleanup(running.close)
    node.workerinput["fork_server"] = node.config.stash[SHARED].address


@pytest.fixture(scope="session")
def fork_server(request: pytest.FixtureRequest) -> Iterator[ForkServer]:
    """A process that has imported everything, for the many commands whose start is not what is tested."""
    if shared := getattr(request.config, "workerinput", {}).get("fork_server"):
        yield ForkServer(shared)
        return
    with started_fork_server() as server:
        yield server


@pytest.fixture
def r2med(request: pytest.FixtureRequest, tmp_path: Path) -> Command:
    """Run `r2med WORDS` in the test's own folder: `r2med("run", "bm25", cwd=…, fault=…, VARIABLE=…)`.

    It runs in this process, which takes a tenth of the time of another one, unless that is told apart: by a fault, by
    variables that are read when something is imported, or by modules of the folder.
    """

    from support.commands import needs_process, run_here  # not there where early floors are tested alone

    def run(*words: str | Path, cwd: Path = tmp_path, **given: Any) -> Ended:
        if needs_process(words, given):
            forked: ForkServer = request.getfixturevalue("fork_server")
            return forked.run(*words, cwd=cwd, **given)
        return run_here(*words, cwd=cwd, **given)

    return run


@pytest.fixture
def embedding_server() -> Iterator[embedding.Server]:
    with embedding.serve() as running:
        yield running


@pytest.fixture
def chat_server() -> Iterator[chat.Server]:
    with chat.serve() as running:
        yield running


@pytest.fixture
def marked_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A marked key, and nothing of the user's own settings."""
    providers = ("OPENAI_", "VOYAGE_", "DEEPSEEK_")
    for name in [name for name in os.environ if "proxy" in name.lower() or name.startswith(providers)]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("VOYAGE_API_KEY", KEY)
