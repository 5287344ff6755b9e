"""The command data fetch completes what a kill or a lost connection left, and fails in one line."""

import time
from pathlib import Path

import pytest

from support import processes
from support.by_day import some_by_day
from support.datasets import hub_files
from support.facts import states
from support.hub import serve
from support.processes import PATIENCE, python, started

BIOLOGY = "R2MED/Biology"


REVISION = "8b9fec2db9eda4b5742d03732213fbaee8169556"


NOBODY = "http://127.0.0.1:9"  # the discard port: nothing listens there


LOAD = """
import r2med
dataset = r2med.load("Biology")
print(dataset.name, len(dataset.queries), len(dataset.corpus), dataset.card.counts.queries)
"""


LOADED = "Biology 2 3 103\n"


@pytest.fixture
def surroundings(tmp_path: Path) -> dict[str, str | Path]:
    return {
        "R2MED_HOME": tmp_path / "r2med-home",
        "HF_HOME": tmp_path / "hf",
        "HF_HUB_CACHE": tmp_path / "cache",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_ENDPOINT": NOBODY,
    }


def snapshot_folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "datasets--R2MED--Biology" / "snapshots" / REVISION


@pytest.mark.slow
def test_a_download_killed_half_way_is_completed_by_the_next(
    tmp_path: Path, surroundings: dict[str, str | Path]
) -> None:
    repository = hub_files(tmp_path / "repository")
    with (
        serve(repository, BIOLOGY, REVISION, stalls_at="corpus/corpus-00000-of-00001.parquet") as hub,
        started(["-c", LOAD], **surroundings | {"HF_ENDPOINT": hub.address}),  # it is killed at the end
    ):
        assert hub.stalled.wait(PATIENCE)
    offline = processes.r2med("data", "fetch", "Biology", **surroundings, HF_HUB_OFFLINE="1")
    assert offline.returncode == 2
    states(offline.stderr, "R2MED/Biology", "hub")
    with serve(repository, BIOLOGY, REVISION) as hub:
        assert python(LOAD, **surroundings | {"HF_ENDPOINT": hub.address}).stdout == LOADED


def test_half_a_cache_is_completed_once_the_hub_can_be_reached(
    tmp_path: Path, surroundings: dict[str, str | Path]
) -> None:
    half = hub_files(snapshot_folder(tmp_path))
    (half / "corpus" / "corpus-00000-of-00001.parquet").unlink()
    offline = processes.r2med("data", "fetch", "Biology", **surroundings)
    assert offline.returncode == 2
    states(offline.stderr, "no files", "config 'corpus'")
    with serve(hub_files(tmp_path / "repository"), BIOLOGY, REVISION) as hub:
        assert python(LOAD, **surroundings | {"HF_ENDPOINT": hub.address}).stdout == LOADED


@pytest.mark.parametrize("offline", some_by_day(["0", "1"], 2))
def test_a_hub_out_of_reach_is_one_line(surroundings: dict[str, str | Path], offline: str) -> None:
    begun = time.monotonic()
    failed = processes.r2med("data", "fetch", "Biology", **surroundings, HF_HUB_OFFLINE=offline)
    assert failed.returncode == 2
    assert failed.stdout == ""
    states(failed.stderr, "R2MED/Biology", "hub", "--data DIR/Biology")
    assert time.monotonic() - begun < 50  # no minute of retries


def test_an_unknown_revision_is_one_line(tmp_path: Path, surroundings: dict[str, str | Path]) -> None:
    with serve(hub_files(tmp_path / "repository"), BIOLOGY, "0" * 40) as hub:
        failed = processes.r2med("data", "fetch", "Biology", **surroundings | {"HF_ENDPOINT": hub.address})
    assert failed.returncode == 2
    states(failed.stderr, "R2MED/Biology", "hub")
