"""The hub: a pinned revision is fetched once, then read without a network; what is missing is one line."""

from pathlib import Path

import pytest

from r2med.data.dataset_cards import cards
from r2med.foundation.text.plurals import shown_bytes
from support.by_day import some_by_day
from support.datasets import hub_files
from support.facts import states
from support.hub import serve
from support.processes import python

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


@pytest.mark.parametrize("suffix", some_by_day(["parquet", "jsonl"], 2))
def test_a_cache_given_by_hand_is_read_offline(
    tmp_path: Path, surroundings: dict[str, str | Path], suffix: str
) -> None:
    hub_files(snapshot_folder(tmp_path), suffix)
    first = python(LOAD, **surroundings, HF_HUB_OFFLINE="1")
    assert (first.stdout, first.stderr) == (LOADED, "")


@pytest.mark.slow
def test_a_dataset_is_fetched_once_and_needs_no_network_while_it_is_cached(
    tmp_path: Path, surroundings: dict[str, str | Path]
) -> None:
    repository = hub_files(tmp_path / "repository")
    with serve(repository, BIOLOGY, REVISION) as hub:
        online = surroundings | {"HF_ENDPOINT": hub.address}
        assert python(LOAD, **online).stdout == LOADED
        fetched = sorted(hub.sent)
        assert python(LOAD, **online).stdout == LOADED
        assert sorted(hub.sent) == fetched == sorted(hub.files)
    assert python(LOAD, **surroundings).stdout == LOADED
    with serve(repository, BIOLOGY, REVISION) as hub:  # and again when its cache is gone
        emptied = surroundings | {"HF_ENDPOINT": hub.address, "HF_HUB_CACHE": tmp_path / "empty"}
        assert python(LOAD, **emptied).stdout == LOADED
        assert sorted(hub.sent) == fetched


def test_the_revision_fetched_is_the_one_of_the_card() -> None:
    hub = cards()["Biology"].hub
    assert hub is not None
    assert (hub.repository, hub.revision) == (BIOLOGY, REVISION)


FETCH = """
import logging, sys
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
import r2med
r2med.fetch_data(["Biology", "demo/Biology"])
"""


def test_bytes_and_minutes_are_said_before_a_download_and_not_again(
    tmp_path: Path, surroundings: dict[str, str | Path]
) -> None:
    repository = hub_files(tmp_path / "repository")
    (repository / "large.bin").write_bytes(bytes(2_000_000))
    size = sum(file.stat().st_size for file in repository.rglob("*") if file.is_file())
    with serve(repository, BIOLOGY, REVISION) as hub:
        online = surroundings | {"HF_ENDPOINT": hub.address}
        first, second = (python(FETCH, **online).stdout for _ in range(2))
    line = next(line for line in first.splitlines() if "fetched" in line)
    states(line, "1 repository", shown_bytes(size), "1 minute", "10 MB a second")
    assert "minute" not in second


def test_a_hub_out_of_reach_announces_no_download(surroundings: dict[str, str | Path]) -> None:
    failed = python(FETCH, **surroundings)
    assert failed.returncode != 0
    assert "minute" not in failed.stdout
