"""A disk that takes no more, or nothing at all: one line, exit code 2, nothing half-written, and then it goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from r2med.results import Record
from support.disturbed import Ended, Place, ended, files_up_to, run, start


@dataclass(frozen=True)
class Stage:
    """A file of a run that does not fit any more, and what of a finished run is taken away so that it is written."""

    file: str
    without: tuple[str, ...]

    def __str__(self) -> str:
        return self.file


STAGES = (
    Stage("home/corpus/*/documents.arrow", ("home", "out")),
    Stage("home/bm25-postings/*/terms.arrow", ("home/bm25-postings", "home/bm25-impacts", "home/run", "out")),
    Stage("home/bm25-impacts/*/impacts.npy", ("home/bm25-impacts", "home/run", "out")),
    Stage("home/run/*/rows.npy", ("home/run", "out")),
    Stage("out/mini/*.trec.gz", ("out",)),
    Stage("out/mini/*.json", ("out",)),
)


def assert_one_line(end: Ended, cause: str) -> None:
    assert end.code == 2, end
    (line,) = end.messages
    assert line.startswith(f"r2med: {cause}"), line
    assert end.stdout == ""


def evaluation(place: Place, mini: Path, **options: Any) -> Ended:
    return run(place, "run", "bm25", "--data", mini, "--out", place.out, **options)


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_a_file_that_does_not_fit_is_one_line_and_leaves_nothing(
    stage: Stage, place: Place, mini: Path, undisturbed: dict[str, Any]
) -> None:
    assert evaluation(place, mini).code == 0
    (path,) = place.root.glob(stage.file)
    size = path.stat().st_size
    for name in stage.without:
        shutil.rmtree(place.root / name)

    assert_one_line(evaluation(place, mini, fault=files_up_to(size - 1)), "the disk takes no larger file")
    assert place.leftovers() == []
    assert list(place.root.glob(stage.file)) == []
    assert len(list(place.out.rglob("*.gz"))) == (stage is STAGES[-1])

    end = evaluation(place, mini)
    assert (end.code, end.messages) == (0, [])
    assert place.outcome() == undisturbed


def test_a_run_starved_at_any_size_never_leaves_half_a_record(place: Place, mini: Path, finished: Place) -> None:
    largest = max(path.stat().st_size for path in finished.root.rglob("*") if path.is_file())
    for size in range(0, largest, largest // 12):
        end = evaluation(place, mini, fault=files_up_to(size))
        assert end.code in (0, 2), end
        assert len(end.messages) == (end.code == 2), end
        assert place.leftovers() == []
        for path in place.out.rglob("*.json"):
            Record.read(path)
    assert evaluation(place, mini).code == 0
    assert place.outcome() == finished.outcome()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting a small disk needs root")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def test_on_a_full_disk_a_run_stops_in_one_line_and_goes_on_when_there_is_room(
    small_disk: Path, mini: Path, undisturbed: dict[str, Any]
) -> None:
    place = Place(small_disk)
    stopped = 0
    for size in range(16, 400, 12):
        remount(small_disk, f"size={size}k")
        end = evaluation(place, mini)
        assert place.leftovers() == []
        if end.code == 0:
            break
        assert end.code == 2, end
        assert len(end.messages) == 1
        assert "full" in end.messages[0] or "No space left" in end.messages[0]
        assert list(place.out.rglob("*.json")) == []
        stopped += 1
    assert stopped >= 5
    assert end.code == 0
    assert place.outcome() == undisturbed


def test_a_complete_store_may_be_read_only(
    small_disk: Path, mini: Path, place: Place, undisturbed: dict[str, Any]
) -> None:
    remount(small_disk, "size=2m")
    store = Place(small_disk)
    assert evaluation(store, mini).code == 0
    remount(small_disk, "ro")
    end = run(store, "run", "bm25", "--data", mini, "--out", place.out)
    assert (end.code, end.messages) == (0, [])
    assert place.outcome() == undisturbed


def test_a_read_only_results_folder_is_one_line(small_disk: Path, mini: Path, place: Place) -> None:
    remount(small_disk, "ro")
    end = run(place, "run", "bm25", "--data", mini, "--out", small_disk / "out")
    assert_one_line(end, f"cannot write results to {small_disk}/out (Read-only file system)")
    assert not place.home.exists()


def test_a_read_only_store_is_one_line(small_disk: Path, mini: Path, place: Place) -> None:
    remount(small_disk, "ro")
    end = run(Place(small_disk), "run", "bm25", "--data", mini, "--out", place.out)
    assert_one_line(end, "the file system is read-only")
    assert place.outcome() == {}


@pytest.mark.parametrize("below", ["", "results", "results/of/today"])
def test_a_file_in_the_way_of_the_results_is_one_line_before_any_work(
    below: str, place: Place, mini: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / below
    end = ended(start(place, "run", "bm25", "--data", mini, "--out", out))
    assert_one_line(end, f"cannot write results to {out} (")
    assert (tmp_path / "file").read_text() == "mine"
    assert not place.home.exists()


def test_a_file_in_the_way_of_a_datasets_folder_is_one_line(place: Place, mini: Path) -> None:
    place.out.mkdir(parents=True)
    (place.out / "mini").write_text("mine")
    assert_one_line(evaluation(place, mini), f"a file is in the way: {place.out}/mini")
    assert (place.out / "mini").read_text() == "mine"


def test_a_folder_in_the_way_of_a_record_is_one_line(place: Place, mini: Path, undisturbed: dict[str, Any]) -> None:
    (name,) = (name for name in undisturbed if name.endswith(".json"))
    (place.out / name).mkdir(parents=True)
    assert_one_line(evaluation(place, mini), "a folder is in the way")
    assert place.leftovers() == []


def test_a_file_in_the_way_of_the_store_is_one_line(place: Place, mini: Path) -> None:
    place.root.mkdir()
    place.home.write_text("mine")
    assert_one_line(evaluation(place, mini), f"a file is in the way: {place.home}")
    assert place.home.read_text() == "mine"
    assert place.outcome() == {}
