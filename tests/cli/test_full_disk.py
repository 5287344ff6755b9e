"""A disk that takes no more, or nothing at all: one line, exit code 2, nothing half-written, and then it goes on."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.records.record import Record
from support.by_day import some_by_day
from support.faults import files_up_to
from support.fork_server import Fault
from support.processes import Ended
from support.workspaces import Workspace

Evaluation = Callable[..., Ended]


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
    assert end.returncode == 2, end
    (line,) = end.messages
    assert line.startswith(f"r2med: {cause}"), line
    assert end.stdout == ""


@pytest.fixture
def evaluation(r2med: Callable[..., Ended], mini: Path) -> Evaluation:
    """Evaluate in a workspace, with results elsewhere if told so, and with a fault if there is one."""

    def run(workspace: Workspace, out: Path | None = None, fault: Fault | None = None) -> Ended:
        words = ["run", "bm25", "--data", mini, "--out", out or workspace.out]
        return r2med(*words, fault=fault, R2MED_HOME=workspace.home)

    return run


@pytest.mark.parametrize("stage", some_by_day(STAGES, 2), ids=str)
def test_a_file_that_does_not_fit_is_one_line_and_leaves_nothing(
    stage: Stage, workspace: Workspace, evaluation: Evaluation, undisturbed: dict[str, Any]
) -> None:
    assert evaluation(workspace).returncode == 0
    (path,) = workspace.root.glob(stage.file)
    size = path.stat().st_size
    for name in stage.without:
        shutil.rmtree(workspace.root / name)

    assert_one_line(evaluation(workspace, fault=files_up_to(size - 1)), "the disk takes no larger file")
    assert workspace.leftovers() == []
    assert list(workspace.root.glob(stage.file)) == []
    assert len(list(workspace.out.rglob("*.gz"))) == (stage is STAGES[-1])

    end = evaluation(workspace)
    assert (end.returncode, end.messages) == (0, [])
    assert workspace.outcome() == undisturbed


@pytest.mark.slow
def test_a_run_starved_at_any_size_never_leaves_half_a_record(
    workspace: Workspace, evaluation: Evaluation, finished: Workspace
) -> None:
    largest = max(path.stat().st_size for path in finished.root.rglob("*") if path.is_file())
    for size in range(0, largest, largest // 12):
        end = evaluation(workspace, fault=files_up_to(size))
        assert end.returncode in (0, 2), end
        assert len(end.messages) == (end.returncode == 2), end
        assert workspace.leftovers() == []
        for path in workspace.out.rglob("*.json"):
            Record.read(path)
    assert evaluation(workspace).returncode == 0
    assert workspace.outcome() == finished.outcome()


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", folder], check=True)


def test_on_a_full_disk_a_run_stops_in_one_line_and_goes_on_when_there_is_room(
    small_disk: Path, evaluation: Evaluation, undisturbed: dict[str, Any]
) -> None:
    workspace = Workspace(small_disk)
    stopped = 0
    for size in range(16, 400, 12):
        remount(small_disk, f"size={size}k")
        end = evaluation(workspace)
        assert workspace.leftovers() == []
        if end.returncode == 0:
            break
        assert end.returncode == 2, end
        assert len(end.messages) == 1
        assert "full" in end.messages[0] or "No space left" in end.messages[0]
        assert list(workspace.out.rglob("*.json")) == []
        stopped += 1
    assert stopped >= 5
    assert end.returncode == 0
    assert workspace.outcome() == undisturbed


def test_a_complete_store_may_be_read_only(
    small_disk: Path, evaluation: Evaluation, workspace: Workspace, undisturbed: dict[str, Any]
) -> None:
    remount(small_disk, "size=2m")
    store = Workspace(small_disk)
    assert evaluation(store).returncode == 0
    remount(small_disk, "ro")
    end = evaluation(store, workspace.out)
    assert (end.returncode, end.messages) == (0, [])
    assert workspace.outcome() == undisturbed


def test_a_read_only_results_folder_is_one_line(small_disk: Path, evaluation: Evaluation, workspace: Workspace) -> None:
    remount(small_disk, "ro")
    end = evaluation(workspace, small_disk / "out")
    assert_one_line(end, f"cannot write to {small_disk}/out (Read-only file system)")
    assert not workspace.home.exists()


def test_a_read_only_store_is_one_line(small_disk: Path, evaluation: Evaluation, workspace: Workspace) -> None:
    remount(small_disk, "ro")
    end = evaluation(Workspace(small_disk), workspace.out)
    assert_one_line(end, "the file system is read-only")
    assert workspace.outcome() == {}


def test_questions_are_answered_from_a_store_that_cannot_be_written(
    small_disk: Path, evaluation: Evaluation, r2med: Callable[..., Ended], mini: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["search", mini, "aspirin fever", "-k", 1, "--format", "json"]
    expected = r2med(*words, R2MED_HOME=tmp_path / "other").stdout
    remount(small_disk, "ro")
    empty = r2med(*words, R2MED_HOME=small_disk / "home")
    assert (empty.returncode, empty.messages, empty.stdout) == (0, [], expected)
    remount(small_disk, "rw,size=2m")
    assert evaluation(Workspace(small_disk), out).returncode == 0
    remount(small_disk, "ro")
    (record,) = (path for path in out.rglob("*.json") if not path.name.startswith("."))
    for end in (
        r2med(*words, R2MED_HOME=small_disk / "home"),
        r2med("why", record, "q1", "--data", mini, R2MED_HOME=small_disk / "home"),
    ):
        assert (end.returncode, end.messages) == (0, []), end


@pytest.mark.parametrize("below", ["", "results", "results/of/today"])
def test_a_file_in_the_way_of_the_results_is_one_line_before_any_work(
    below: str, workspace: Workspace, evaluation: Evaluation, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" / below
    end = evaluation(workspace, out)
    assert_one_line(end, f"cannot write to {out} (")
    assert (tmp_path / "file").read_text() == "mine"
    assert not workspace.home.exists()


def test_a_file_in_the_way_of_a_datasets_folder_is_one_line(workspace: Workspace, evaluation: Evaluation) -> None:
    workspace.out.mkdir(parents=True)
    (workspace.out / "mini").write_text("mine")
    assert_one_line(evaluation(workspace), f"a file is in the way: {workspace.out}/mini")
    assert (workspace.out / "mini").read_text() == "mine"


def test_a_folder_in_the_way_of_a_record_is_one_line(
    workspace: Workspace, evaluation: Evaluation, undisturbed: dict[str, Any]
) -> None:
    (name,) = (name for name in undisturbed if name.endswith(".json"))
    (workspace.out / name).mkdir(parents=True)
    assert_one_line(evaluation(workspace), "a folder is in the way")
    assert workspace.leftovers() == []


def test_a_file_in_the_way_of_the_store_is_one_line(workspace: Workspace, evaluation: Evaluation) -> None:
    workspace.root.mkdir()
    workspace.home.write_text("mine")
    assert_one_line(evaluation(workspace), f"a file is in the way: {workspace.home}")
    assert workspace.home.read_text() == "mine"
    assert workspace.outcome() == {}
