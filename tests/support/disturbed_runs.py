"""A small dataset, what an undisturbed evaluation of it gives, and workspaces to disturb others in."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from support.datasets import random_folder
from support.workspaces import Workspace


@pytest.fixture(scope="session")
def mini(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return random_folder(tmp_path_factory.mktemp("data") / "mini", documents=30)


@pytest.fixture(scope="session")
def thousands(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset whose index takes a moment to build."""
    return random_folder(tmp_path_factory.mktemp("data") / "thousands", documents=6000)


@pytest.fixture(scope="session")
def finished(mini: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """An undisturbed run of bm25 on the small dataset; not to be written to."""
    workspace = Workspace(tmp_path_factory.mktemp("finished"))
    evaluate("bm25", mini, workspace.out, store=Store(workspace.home))
    return workspace


@pytest.fixture(scope="session")
def undisturbed(finished: Workspace) -> dict[str, Any]:
    """What every disturbed run has to come to."""
    return finished.outcome()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of half a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)
