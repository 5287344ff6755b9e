"""A small dataset, what an undisturbed evaluation of it gives, and places to disturb others in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.disturbed import Place, run, write_dataset


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("data") / "mini", documents=30)


@pytest.fixture(scope="session")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose index takes a moment to build."""
    return write_dataset(tmp_path_factory.mktemp("data") / "thousands", documents=6000)


@pytest.fixture(scope="session")
def finished(mini: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """An undisturbed run of bm25 on the small dataset; not to be written to."""
    place = Place(tmp_path_factory.mktemp("finished"))
    assert run(place, "run", "bm25", "--data", mini, "--out", place.out).code == 0
    return place


@pytest.fixture(scope="session")
def undisturbed(finished: Place) -> dict[str, Any]:
    """What every disturbed run has to come to."""
    return finished.outcome()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "place")
