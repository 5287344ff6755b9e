"""Killed or stopped at any instant, the next start goes on, and its records are those of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.faults import killed_after, signal_at, tell_writes
from support.fork_server import Fault, ForkServer, Running, together
from support.processes import Ended, ended, started, wait_for
from support.workspaces import Workspace

AT_ONCE = 6
STOPPED = ["r2med: stopped; the same command goes on from here"]


def from_nothing(workspace: Workspace, finished: Workspace) -> None:
    """Everything is still to be made."""


def over_finished_work(workspace: Workspace, finished: Workspace) -> None:
    shutil.copytree(finished.root, workspace.root)


@dataclass(frozen=True)
class Sweep:
    """A run that gets a signal before one of its writes, and a second one after it; for every `stride`-th write.

    Writes just after a flush are left out: what lies on the disk is what lay there before the flush.
    """

    prepare: Callable[[Workspace, Workspace], None]
    number: signal.Signals
    stride: int
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = "-then-".join("fresh" if extra else "run" for extra in (self.first, self.second))
        return f"{self.number.name}-{self.prepare.__name__}-{words}"


FRESH = ("--fresh",)
SWEEPS = (
    Sweep(from_nothing, signal.SIGKILL, 5),
    Sweep(over_finished_work, signal.SIGKILL, 7, FRESH, FRESH),
    Sweep(over_finished_work, signal.SIGKILL, 11, FRESH),
    Sweep(from_nothing, signal.SIGINT, 11),
    Sweep(over_finished_work, signal.SIGINT, 11, FRESH),
)


@pytest.mark.slow
@pytest.mark.parametrize("sweep", SWEEPS, ids=str)
def test_killed_or_stopped_before_any_of_its_writes_a_run_is_completed_by_the_next_start(
    sweep: Sweep, mini: Path, finished: Workspace, fork_server: ForkServer, tmp_path: Path
) -> None:
    def begin(workspace: Workspace, *extra: str, fault: Fault | None = None) -> Running:
        words = ["run", "bm25", "--data", mini, "--out", workspace.out, *extra]
        return fork_server.start(*words, fault=fault, R2MED_HOME=workspace.home)

    def disturbed(step: int, workspace: Workspace) -> Running:
        return begin(workspace, *sweep.first, fault=signal_at(step, sweep.number, workspace.root))

    counted = Workspace(tmp_path / "counted")
    sweep.prepare(counted, finished)
    assert begin(counted, *sweep.first, fault=tell_writes(counted.root, tmp_path / "writes")).ended().returncode == 0
    writes = (tmp_path / "writes").read_text().split()
    steps = [step for step, before in enumerate(["", *writes[:-1]], 1) if before != "fsync"][:: sweep.stride]
    assert len(steps) * sweep.stride > 50
    wrong = {}
    for chunk in (steps[first : first + AT_ONCE] for first in range(0, len(steps), AT_ONCE)):
        workspaces = {step: Workspace(tmp_path / str(step)) for step in chunk}
        for workspace in workspaces.values():
            sweep.prepare(workspace, finished)
        ends = together(disturbed(step, workspace) for step, workspace in workspaces.items())
        dirt = [workspace.leftovers() for workspace in workspaces.values()]
        again = together(begin(workspace, *sweep.second) for workspace in workspaces.values())
        for (step, workspace), *seen in zip(workspaces.items(), ends, dirt, again, strict=True):
            if fault := judge(sweep, finished, workspace, *seen):
                wrong[step] = fault
            shutil.rmtree(workspace.root)
    assert wrong == {}


def judge(sweep: Sweep, finished: Workspace, workspace: Workspace, end: Ended, dirt: list[str], again: Ended) -> str:
    """Say what was wrong with one pair of starts, if anything."""
    if sweep.number == signal.SIGKILL and end.returncode != -signal.SIGKILL:
        return f"it was not killed: {end}"
    if sweep.number == signal.SIGINT and (end.returncode, end.messages[-1:], dirt) != (130, STOPPED, []):
        return f"it did not stop cleanly: {end} {dirt}"
    if again.returncode != 0:
        return f"the next start failed: {again}"
    if workspace.outcome() != finished.outcome():
        return "the next start gave other records"
    # What a killed `--fresh` leaves in the store goes when the same things are made again, not when they are read.
    if sweep.first == sweep.second and workspace.leftovers():
        return f"the next start left {workspace.leftovers()}"
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("data", ["demo", "thousands"])
def test_killed_again_and_again_at_random_instants_a_run_comes_to_the_same_end(
    data: str, request: pytest.FixtureRequest, fork_server: ForkServer, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", "demo" if data == "demo" else request.getfixturevalue(data), "--out"]
    calm, killed = Workspace(tmp_path / "calm"), Workspace(tmp_path / "killed")

    def begin(workspace: Workspace, fault: Fault | None = None) -> Ended:
        return fork_server.run(*words, workspace.out, fault=fault, R2MED_HOME=workspace.home)

    beginning = time.monotonic()
    assert begin(calm).returncode == 0
    duration = time.monotonic() - beginning
    seed = random.randrange(10**6)
    print(f"instants of seed {seed}")
    chance = random.Random(seed)
    for instant in sorted(chance.uniform(0.1, 1) for _ in range(3)):
        begin(killed, killed_after(instant * duration))
    end = begin(killed)
    assert (end.returncode, end.messages) == (0, [])
    assert killed.outcome() == calm.outcome()
    assert killed.leftovers() == []


PAUSED = """
import pathlib, sys, time

def pause(event, arguments):
    if event == "open" and "locks/bm25-postings" in str(arguments[0]):
        pathlib.Path(__file__).with_name("paused").touch()
        time.sleep(600)

sys.addaudithook(pause)
"""


def test_ctrl_c_is_one_line_and_exit_code_130(
    workspace: Workspace, mini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PAUSED)  # Ctrl-C then comes in the middle, however fast the machine
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    words = ["run", "bm25", "--data", mini, "--out", workspace.out]
    with started(["-m", "r2med", *words], R2MED_HOME=workspace.home) as process:
        wait_for((tmp_path / "paused").exists)
        process.send_signal(signal.SIGINT)
        end = ended(process)
    assert (end.returncode, end.messages) == (130, STOPPED)
    assert end.stderr.startswith("[1/1] mini · bm25\n")
    assert workspace.outcome() == {}
