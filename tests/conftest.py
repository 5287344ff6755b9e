"""What every test stands on: a store of its own, and nothing of the user's surroundings."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's cache and plugins out of every test."""
    folder = tmp_path / "r2med-home"
    monkeypatch.setenv("R2MED_HOME", str(folder))
    monkeypatch.delenv("R2MED_PLUGINS", raising=False)
    return folder
