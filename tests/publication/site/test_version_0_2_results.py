"""Files that version 0.2 wrote are compared, verified, explained and shown on a board."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import r2med

WRITTEN = Path(__file__).parents[2] / "evaluation/records/version-0.2"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return Path(shutil.copytree(WRITTEN, tmp_path / "results"))


def test_they_are_compared_verified_explained_and_shown_on_a_board(results: Path) -> None:
    gap = r2med.compare(results / "demo", baseline="bm25", resamples=200).pairs[0]
    assert (gap.a, gap.b, f"{gap.difference:.2f}") == ("hyde(author) → bm25", "bm25", "65.22")
    checked = r2med.verify([results / "entry.json"], results / "demo/Biology")
    assert [each.fault for each in checked] == ["", ""]
    assert "bio-031" in str(r2med.why(results / "demo/Biology/bm25-ff04720fec.json", "0"))
    page = r2med.board([results / "demo"], "board", texts=False)
    assert page.is_file() and any("hyde(author)" in file.read_text("utf-8") for file in page.parent.rglob("*.js"))
