"""What every test stands on: a store of its own, and nothing of the user's surroundings."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import HealthCheck, settings

from r2med.store import Store
from support import chat_server as chat
from support import embedding_server as embedding
from support.keys import KEY
from support.prepared import Prepared, prepare

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


@pytest.fixture(scope="session")
def prepared() -> Iterator[Prepared]:
    """A process that has imported everything, for the many commands whose start is not what is tested."""
    with prepare() as running:
        yield running


@pytest.fixture
def forked(prepared: Prepared, tmp_path: Path) -> Callable[..., CompletedProcess[str]]:
    """Run `r2med ARGUMENTS` in the test's own folder, forked from the process that has imported everything."""
    return lambda *arguments, **changes: prepared.r2med(*arguments, cwd=tmp_path, **changes)


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
