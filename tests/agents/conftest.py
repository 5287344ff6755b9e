"""What the tests of agents stand on."""

from pathlib import Path

import pytest

from r2med.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")
