"""What every test stands on: a store of its own, and nothing of the user's surroundings."""

import os
import signal
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from r2med.store import Store
from support import chat_server as chat
from support import embedding_server as embedding
from support.fork_server import ForkServer
from support.fork_server import fork_server as running_fork_server
from support.keys import KEY
from support.processes import Ended
from support.workspaces import Workspace

# A busy machine may take any time for an example; that is no fault of what is tested.
settings.register_profile("any-machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")


def pytest_configure() -> None:
    """Let Ctrl-C reach the programs under test: a process in the background ignores it, and they would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's cache and plugins out of every test."""
    folder = tmp_path / "r2med-home"
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


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """A process that has imported everything, for the many commands whose start is not what is tested."""
    with running_fork_server() as server:
        yield server


@pytest.fixture
def r2med(fork_server: ForkServer, tmp_path: Path) -> Callable[..., Ended]:
    """Run `r2med WORDS` in the test's own folder: `r2med("run", "bm25", cwd=…, fault=…, VARIABLE=…)`."""
    return partial(fork_server.run, cwd=tmp_path)


@pytest.fixture
def forked(r2med: Callable[..., Ended]) -> Callable[..., Ended]:
    """The same under its old name."""
    return r2med


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
