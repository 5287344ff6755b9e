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

from support.disturbed import Child, Ended, Fault, Place, ended, signal_at, start, tell_writes, together
from support.processes import wait_for

AT_ONCE = 6
STOPPED = ["r2med: stopped; the same command goes on from here"]


def from_nothing(place: Place, finished: Place) -> None:
    """Everything is still to be made."""


def over_finished_work(place: Place, finished: Place) -> None:
    shutil.copytree(finished.root, place.root)


def over_damaged_work(place: Place, finished: Place) -> None:
    shutil.copytree(finished.root, place.root)
    for path in [*place.home.rglob("*.npy"), *place.home.rglob("*.arrow"), *place.out.rglob("*.gz")]:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@dataclass(frozen=True)
class Sweep:
    """A run that gets a signal before one of its writes, and a second one after it; for every `stride`-th write."""

    prepare: Callable[[Place, Place], None]
    number: signal.Signals
    stride: int
    first: tuple[str, ...] = ()
    second: tuple[str, ...] = ()

    def __str__(self) -> str:
        words = "-then-".join("fresh" if extra else "run" for extra in (self.first, self.second))
        return f"{self.number.name}-{self.prepare.__name__}-{words}"


FRESH = ("--fresh",)
SWEEPS = (
    Sweep(from_nothing, signal.SIGKILL, 2),
    Sweep(over_finished_work, signal.SIGKILL, 5, FRESH, FRESH),
    Sweep(over_finished_work, signal.SIGKILL, 7, FRESH),
    Sweep(over_damaged_work, signal.SIGKILL, 5),
    Sweep(from_nothing, signal.SIGINT, 7),
    Sweep(over_finished_work, signal.SIGINT, 11, FRESH),
    Sweep(over_damaged_work, signal.SIGINT, 11),
)


@pytest.mark.parametrize("sweep", SWEEPS, ids=str)
def test_killed_or_stopped_before_any_of_its_writes_a_run_is_completed_by_the_next_start(
    sweep: Sweep, mini: Path, finished: Place, tmp_path: Path
) -> None:
    def begin(place: Place, *extra: str, fault: Fault | None = None) -> Child:
        return Child(place, "run", "bm25", "--data", mini, "--out", place.out, *extra, fault=fault)

    def disturbed(step: int, place: Place) -> Child:
        return begin(place, *sweep.first, fault=signal_at(step, sweep.number, place.root))

    counted = Place(tmp_path / "counted")
    sweep.prepare(counted, finished)
    assert begin(counted, *sweep.first, fault=tell_writes(counted.root, tmp_path / "writes")).ended().code == 0
    steps = range(1, len((tmp_path / "writes").read_text().split()) + 1, sweep.stride)
    assert len(steps) * sweep.stride > 50
    wrong = {}
    for chunk in (steps[first : first + AT_ONCE] for first in range(0, len(steps), AT_ONCE)):
        places = {step: Place(tmp_path / str(step)) for step in chunk}
        for place in places.values():
            sweep.prepare(place, finished)
        ends = together(disturbed(step, place) for step, place in places.items())
        dirt = [place.leftovers() for place in places.values()]
        again = together(begin(place, *sweep.second) for place in places.values())
        for (step, place), *seen in zip(places.items(), ends, dirt, again, strict=True):
            if fault := judge(sweep, finished, place, *seen):
                wrong[step] = fault
            shutil.rmtree(place.root)
    assert wrong == {}


def judge(sweep: Sweep, finished: Place, place: Place, end: Ended, dirt: list[str], again: Ended) -> str:
    """Say what was wrong with one pair of starts, if anything."""
    if sweep.number == signal.SIGKILL and end.code != -signal.SIGKILL:
        return f"it was not killed: {end}"
    if sweep.number == signal.SIGINT and (end.code, end.messages[-1:], dirt) != (130, STOPPED, []):
        return f"it did not stop cleanly: {end} {dirt}"
    if again.code != 0:
        return f"the next start failed: {again}"
    if place.outcome() != finished.outcome():
        return "the next start gave other records"
    # What a killed `--fresh` leaves in the store goes when the same things are made again, not when they are read.
    if sweep.first == sweep.second and place.leftovers():
        return f"the next start left {place.leftovers()}"
    return ""


@pytest.mark.parametrize("data", ["demo", "thousands"])
def test_killed_again_and_again_at_random_instants_a_run_comes_to_the_same_end(
    data: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", "demo" if data == "demo" else request.getfixturevalue(data), "--out"]
    calm, killed = Place(tmp_path / "calm"), Place(tmp_path / "killed")
    started = time.monotonic()
    assert ended(start(calm, *words, calm.out)).code == 0
    duration = time.monotonic() - started
    for instant in sorted(random.uniform(0.4, 1) for _ in range(3)):
        process = start(killed, *words, killed.out)
        time.sleep(instant * duration)
        process.kill()
        process.communicate()
    end = ended(start(killed, *words, killed.out))
    assert (end.code, end.messages) == (0, [])
    assert killed.outcome() == calm.outcome()
    assert killed.leftovers() == []


PAUSED = """
import pathlib, sys, time

def pause(event, arguments):
    if event == "os.mkdir" and "bm25-postings" in str(arguments[0]):
        pathlib.Path(__file__).with_name("paused").touch()
        time.sleep(600)

sys.addaudithook(pause)
"""


def test_ctrl_c_is_one_line_and_exit_code_130(
    place: Place, mini: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(PAUSED)  # Ctrl-C then comes in the middle, however fast the machine
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process = start(place, "run", "bm25", "--data", mini, "--out", place.out)
    wait_for((tmp_path / "paused").exists)
    process.send_signal(signal.SIGINT)
    end = ended(process)
    assert (end.code, end.messages) == (130, STOPPED)
    assert end.stderr.startswith("[1/1] mini · bm25\n")
    assert place.outcome() == {}
