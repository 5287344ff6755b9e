"""Killed or stopped at any instant, the next start goes on, and its records are those of an undisturbed run."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from support.disturbed import Child, Ended, Place, ended, signal_at, start, tell_writes, together

AT_ONCE = 4


def from_nothing(place: Place, finished: Place) -> list[str]:
    return []


def over_finished_work(place: Place, finished: Place) -> list[str]:
    shutil.copytree(finished.root, place.root)
    return ["--fresh"]


def over_damaged_work(place: Place, finished: Place) -> list[str]:
    shutil.copytree(finished.root, place.root)
    for path in [*place.home.rglob("*.npy"), *place.home.rglob("*.arrow"), *place.out.rglob("*.gz")]:
        content = path.read_bytes()
        path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    return []


Situation = Callable[[Place, Place], list[str]]
every_situation = pytest.mark.parametrize("situation", [from_nothing, over_finished_work, over_damaged_work])


@every_situation
def test_killed_before_any_of_its_writes_a_run_is_completed_by_the_next_start(
    situation: Situation, mini: Path, finished: Place, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    assert sweep(situation, signal.SIGKILL, mini, finished, tmp_path, stride=1) == {}


@every_situation
def test_stopped_with_ctrl_c_before_any_of_its_writes_a_run_leaves_nothing_and_is_completed_by_the_next_start(
    situation: Situation, mini: Path, finished: Place, tmp_path: Path
) -> None:
    assert sweep(situation, signal.SIGINT, mini, finished, tmp_path, stride=7) == {}


@pytest.mark.parametrize("data", ["demo", "thousands"])
def test_killed_again_and_again_at_random_instants_a_run_comes_to_the_same_end(
    data: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", "demo" if data == "demo" else request.getfixturevalue(data), "--out"]
    calm, killed = Place(tmp_path / "calm"), Place(tmp_path / "killed")
    started = time.monotonic()
    assert ended(start(calm, *words, calm.out)).code == 0
    duration = time.monotonic() - started
    for instant in sorted(random.uniform(0.4, 1) for _ in range(5)):
        process = start(killed, *words, killed.out)
        time.sleep(instant * duration)
        process.kill()
        process.communicate()
    end = ended(start(killed, *words, killed.out))
    assert (end.code, end.messages) == (0, [])
    assert killed.outcome() == calm.outcome()
    assert killed.leftovers() == []


def test_ctrl_c_is_one_line_and_exit_code_130(place: Place, thousands: Path) -> None:
    process = start(place, "run", "bm25", "--data", thousands, "--out", place.out)
    assert process.stderr is not None
    assert process.stderr.readline() == "[1/1] thousands · bm25\n"
    process.send_signal(signal.SIGINT)
    end = ended(process)
    assert (end.code, end.messages) == (130, ["r2med: stopped; the same command goes on from here"])
    assert place.outcome() == {}


def sweep(
    situation: Situation, number: signal.Signals, mini: Path, finished: Place, folder: Path, stride: int
) -> dict[int, str]:
    """Send a signal before every `stride`-th write of a run; return what went wrong, by the number of the write."""

    def begin(place: Place, **options: Any) -> Child:
        return Child(place, "run", "bm25", "--data", mini, "--out", place.out, *extra, **options)

    told = folder / "writes"
    place = Place(folder / "counted")
    extra = situation(place, finished)
    assert begin(place, fault=tell_writes(place.root, told)).ended().code == 0
    writes = len(told.read_text().split())
    assert writes > 50
    steps = iter(range(1, writes + 1, stride))
    wrong = {}
    while chunk := list(islice(steps, AT_ONCE)):
        places = {step: Place(folder / str(step)) for step in chunk}
        for place in places.values():
            situation(place, finished)
        first = together(begin(place, fault=signal_at(step, number, place.root)) for step, place in places.items())
        dirt = {step: place.leftovers() for step, place in places.items()}
        second = together(begin(place) for place in places.values())
        for (step, place), before, after in zip(places.items(), first, second, strict=True):
            tidy = number == signal.SIGKILL or not dirt[step]
            fault = judge(before, after, number) or ("" if tidy else f"left {dirt[step]}")
            if fault := fault or same(place, finished):
                wrong[step] = fault
            shutil.rmtree(place.root)
    return wrong


def judge(before: Ended, after: Ended, number: signal.Signals) -> str:
    if number == signal.SIGKILL and before.code != -signal.SIGKILL:
        return f"it was not killed: {before}"
    if number == signal.SIGINT and (before.code, len(before.messages)) != (130, 1):
        return f"it did not stop in one line: {before}"
    return "" if after.code == 0 else f"the next start failed: {after}"


def same(place: Place, finished: Place) -> str:
    if place.outcome() != finished.outcome():
        return "the next start gave other records"
    return f"the next start left {place.leftovers()}" if place.leftovers() else ""
