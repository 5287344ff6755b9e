"""Several processes on the same work: one builds, the others wait, nobody spoils another's files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.records.record import Record
from support.by_day import some_by_day
from support.faults import tell_builds
from support.fork_server import ForkServer, Running, together
from support.processes import ended, started
from support.workspaces import Workspace

Begin = Callable[..., Running]
SOUND = (0, [])


@pytest.fixture(scope="module")
def alone(thousands: Path, fork_server: ForkServer, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = Workspace(tmp_path_factory.mktemp("alone"))
    words = ["run", "bm25", "--data", thousands, "--out", workspace.out]
    assert fork_server.run(*words, R2MED_HOME=workspace.home).returncode == 0
    return workspace


@pytest.fixture
def begin(fork_server: ForkServer, workspace: Workspace) -> Begin:
    """Start a command in the workspace."""
    return partial(fork_server.start, R2MED_HOME=workspace.home)


def assert_sound(workspace: Workspace, alone: Workspace) -> None:
    assert workspace.outcome() == alone.outcome()
    assert workspace.leftovers() == []
    for path in workspace.out.rglob("*.json"):
        assert Record.read(path).files_are_sound(path.parent)


@pytest.mark.parametrize("processes", some_by_day([4, 2], 2))
def test_one_process_builds_the_index_while_the_others_wait(
    processes: int, begin: Begin, workspace: Workspace, thousands: Path, alone: Workspace, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", thousands, "--out", workspace.out]
    ends = together(begin(*words, fault=tell_builds(tmp_path / "builds")) for _ in range(processes))
    assert [(end.returncode, end.messages) for end in ends] == [SOUND] * processes
    assert (tmp_path / "builds").read_text() == "build\n"
    assert_sound(workspace, alone)


MODEL = """
import time

class Model:
    revision = "1"

    def encode(self, texts):
        time.sleep(0.3)  # so that the other process asks while this one encodes
        with open(LOG, "a") as log:
            log.writelines(f"{text!r}\\n" for text in texts)
        return [[len(text) % 7 + 1, len(text.split()[0]) % 5, 1] for text in texts]
"""


def test_one_process_encodes_while_the_other_waits(
    fork_server: ForkServer, workspace: Workspace, mini: Path, tmp_path: Path
) -> None:
    def encoded(name: str, processes: int) -> list[str]:
        """Return the texts that were encoded, with repetitions."""
        (tmp_path / f"{name}_model.py").write_text(f"LOG = {str(tmp_path / name)!r}\n{MODEL}")
        words = ["run", f"bm25+py:{name}_model:Model", "--data", mini, "--out", workspace.out / name]
        find = partial(sys.path.insert, 0, str(tmp_path))
        commands = [fork_server.start(*words, fault=find, R2MED_HOME=workspace.home) for _ in range(processes)]
        assert [end.returncode for end in together(commands)] == [0] * processes
        return sorted((tmp_path / name).read_text().splitlines())

    assert encoded("one", 1) == encoded("two", 2)


@pytest.mark.slow
def test_four_command_lines_at_once_agree(workspace: Workspace, thousands: Path, alone: Workspace) -> None:
    words = ["-m", "r2med", "run", "bm25", "--data", thousands, "--out", workspace.out]
    with ExitStack() as running:
        processes = [running.enter_context(started(words, R2MED_HOME=workspace.home)) for _ in range(4)]
        ends = [ended(process) for process in processes]
    assert [(end.returncode, end.messages) for end in ends] == [SOUND] * 4
    assert_sound(workspace, alone)


@pytest.mark.slow
def test_processes_that_redo_everything_do_not_pull_files_from_under_each_other(
    begin: Begin, workspace: Workspace, thousands: Path, alone: Workspace
) -> None:
    words = ["run", "bm25", "--data", thousands, "--out", workspace.out]
    assert begin(*words).ended().returncode == 0
    for _ in range(2):
        ends = together(begin(*words, *extra) for extra in (["--fresh"], [], ["--fresh"], ["--fresh"]))
        assert [(end.returncode, end.messages) for end in ends] == [SOUND] * 4
    assert_sound(workspace, alone)


def test_different_work_in_one_store_at_once_is_all_done(
    fork_server: ForkServer, workspace: Workspace, mini: Path, thousands: Path
) -> None:
    def outcome(workspace: Workspace, at_once: bool) -> dict[str, Any]:
        jobs = [(system, data) for system in ("bm25", "bm25(k1=1.2)") for data in (mini, thousands)]
        begin = partial(fork_server.start, R2MED_HOME=workspace.home)
        commands = (begin("run", system, "--data", data, "--out", workspace.out) for system, data in jobs)
        ends = together(commands) if at_once else [command.ended() for command in commands]
        assert [(end.returncode, end.messages) for end in ends] == [SOUND] * 4
        return workspace.outcome()

    assert outcome(workspace, at_once=True) == outcome(Workspace(workspace.root / "in turn"), at_once=False)
