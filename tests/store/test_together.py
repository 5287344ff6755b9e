"""Several processes on the same work: one builds, the others wait, nobody spoils another's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from r2med.results import Record
from support.disturbed import Child, Place, ended, run, start, tell_builds, together

SOUND = (0, [])


@pytest.fixture(scope="module")
def alone(thousands: Path, tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = Place(tmp_path_factory.mktemp("alone"))
    assert run(place, "run", "bm25", "--data", thousands, "--out", place.out).code == 0
    return place


def assert_sound(place: Place, alone: Place) -> None:
    assert place.outcome() == alone.outcome()
    assert place.leftovers() == []
    for path in place.out.rglob("*.json"):
        assert Record.read(path).files_are_sound(path.parent)


@pytest.mark.parametrize("processes", [2, 4])
def test_one_process_builds_the_index_while_the_others_wait(
    processes: int, place: Place, thousands: Path, alone: Place, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", thousands, "--out", place.out]
    ends = together(Child(place, *words, fault=tell_builds(tmp_path / "builds")) for _ in range(processes))
    assert [(end.code, end.messages) for end in ends] == [SOUND] * processes
    assert (tmp_path / "builds").read_text() == "build\n"
    assert_sound(place, alone)


def test_four_command_lines_at_once_agree(place: Place, thousands: Path, alone: Place) -> None:
    started = [start(place, "run", "bm25", "--data", thousands, "--out", place.out) for _ in range(4)]
    ends = [ended(process) for process in started]
    assert [(end.code, end.messages) for end in ends] == [SOUND] * 4
    assert_sound(place, alone)


def test_processes_that_redo_everything_do_not_pull_files_from_under_each_other(
    place: Place, thousands: Path, alone: Place
) -> None:
    words = ["run", "bm25", "--data", thousands, "--out", place.out]
    assert run(place, *words).code == 0
    for _ in range(2):
        ends = together(Child(place, *words, *extra) for extra in (["--fresh"], [], ["--fresh"], ["--fresh"]))
        assert [(end.code, end.messages) for end in ends] == [SOUND] * 4
    assert_sound(place, alone)


def test_processes_that_find_the_same_damage_mend_it_once(
    place: Place, thousands: Path, alone: Place, tmp_path: Path
) -> None:
    words = ["run", "bm25", "--data", thousands, "--out", place.out]
    assert run(place, *words).code == 0
    for path in [*place.home.rglob("*.npy"), *place.out.rglob("*.gz")]:
        os.truncate(path, path.stat().st_size - 1)
    ends = together(Child(place, *words, fault=tell_builds(tmp_path / "builds")) for _ in range(4))
    assert [end.code for end in ends] == [0] * 4
    assert (tmp_path / "builds").read_text() == "build\n"
    told = [message for end in ends for message in end.messages if "bm25-postings" in message]
    assert len(told) == 1
    assert_sound(place, alone)


def test_different_work_in_one_store_at_once_is_all_done(place: Place, mini: Path, thousands: Path) -> None:
    def outcome(place: Place, at_once: bool) -> dict[str, Any]:
        jobs = [[s, "--data", str(d)] for s in ("bm25", "bm25(k1=1.2)") for d in (mini, thousands)]
        children = [["run", *job, "--out", str(place.out)] for job in jobs]
        ends = together(Child(place, *w) for w in children) if at_once else [run(place, *w) for w in children]
        assert [(end.code, end.messages) for end in ends] == [SOUND] * 4
        return place.outcome()

    assert outcome(place, at_once=True) == outcome(Place(place.root / "in turn"), at_once=False)
