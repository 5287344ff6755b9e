"""Whose work is whose: only what is known to be the dead's counts as theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from r2med.foundation.store.owners import abandoned, is_dead, process_name, stale, stale_work

NAME = "import os; from r2med.foundation.store.owners import process_name; print(process_name())"


def name_of_a_dead_process() -> str:
    return subprocess.run([sys.executable, "-c", NAME], capture_output=True, text=True, check=True).stdout.strip()


def test_a_process_that_ended_is_dead_and_a_living_one_is_not() -> None:
    assert is_dead(name_of_a_dead_process())
    assert not is_dead(process_name())
    machine, _, rest = process_name().split("~")
    assert not is_dead(f"{machine}~{os.getppid()}~{rest}")


@pytest.mark.parametrize("name", ["", "~", "~~", "a~b~c", "a~1~c", "note.json", "٣~٣~٣", "x~" + "9" * 5000 + "~y"])
def test_of_what_is_no_name_of_ours_nothing_is_known(name: str) -> None:
    assert not is_dead(name)


def test_a_number_too_long_for_a_process_is_none() -> None:
    assert not is_dead(process_name().split("~")[0] + "~" + "9" * 5000 + "~0")


def test_processes_of_another_container_of_the_same_host_name_are_not_taken_for_dead() -> None:
    separate = ["unshare", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*separate, "true"], capture_output=True).returncode:
        pytest.skip("a namespace of process ids needs root")
    other = subprocess.run([*separate, sys.executable, "-c", NAME], capture_output=True, text=True, check=True)
    name = other.stdout.strip()
    assert name.split("~")[0].rpartition("-")[0] == process_name().split("~")[0].rpartition("-")[0]
    assert not is_dead(name)


def test_only_what_the_dead_left_is_stale(tmp_path: Path) -> None:
    dead = name_of_a_dead_process()
    for name in (dead, f"key.{dead}", f"key2.{dead}", process_name(), f"key.{process_name()}", "key"):
        (tmp_path / name).mkdir()
    assert [path.name for path in stale(tmp_path)] == [dead]
    assert [path.name for path in stale(tmp_path, "key.")] == [f"key.{dead}"]
    assert sorted(path.name for path in stale_work(tmp_path)) == [f"key.{dead}", f"key2.{dead}"]
    assert [path.name for path in stale_work(tmp_path, "key")] == [f"key.{dead}"]
    assert list(stale(tmp_path / "nowhere")) == list(stale_work(tmp_path / "nowhere")) == []


def test_a_process_that_ended_before_the_host_was_renamed_is_dead() -> None:
    machine, _, rest = name_of_a_dead_process().partition("~")
    renamed = f"another-host-{machine.rpartition('-')[2]}"
    assert is_dead(f"{renamed}~{rest}")
    assert not is_dead(f"{renamed}~{os.getpid()}~{rest.rpartition('~')[2]}")


def test_other_machines_work_is_removed_when_it_was_not_touched_for_a_day(tmp_path: Path) -> None:
    machine, process, rest = process_name().split("~")
    old, new = (tmp_path / f"{machine[:-8]}{number:08}~{process}~{rest}" for number in range(2))
    for folder in (old, new, tmp_path / process_name()):
        folder.mkdir()
        (folder / "file").touch()
    for path in (old / "file", old):
        os.utime(path, (0, 0))
    assert list(abandoned(tmp_path)) == [old]
