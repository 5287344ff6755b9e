"""Records of the demo that analyses read."""

from pathlib import Path

import pytest

import r2med
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store


@pytest.fixture
def results(tmp_path: Path, store: Store) -> Path:
    r2med.run(["bm25", "hyde(author) → bm25"], ["demo/MedQA-Diag"], out=tmp_path / "results", setup=Setup(store=store))
    return tmp_path / "results"
