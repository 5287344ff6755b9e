"""Sharing: one at a time; what a dead process left is removed, what a living one holds stays; and who may read it."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import sys
import threading
from pathlib import Path

import pytest

from r2med.foundation.store import Store
from r2med.foundation.store.sharing import exclusive, held, is_swept, private_folder
from support.processes import wait_for

HOLDER = """
import signal, sys
from pathlib import Path
from r2med.foundation.store.sharing import held
with held(Path(sys.argv[1]), getattr(Path, sys.argv[2])):
    Path(sys.argv[1] + ".ready").touch()
    signal.pause()
"""


def test_a_lock_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    inside, most = 0, 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(20):
            with exclusive(tmp_path / "locks" / "lock"):
                inside += 1
                most = max(most, inside)
                threading.Event().wait(0.0005)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_a_lock_is_let_go_when_the_work_fails(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError), exclusive(tmp_path / "lock"):
            raise RuntimeError


def test_locks_do_not_pile_up(tmp_path: Path) -> None:
    for number in range(3):
        with exclusive(tmp_path / str(number)):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_lock_whose_file_was_removed_while_somebody_waited_is_one_lock_still(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with exclusive(path):
            order.append("second")

    with exclusive(path):
        thread = threading.Thread(target=second)
        thread.start()
        waiting.wait()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
    assert not path.exists()


def test_without_locks_the_work_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(handle: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with exclusive(tmp_path / "lock"), held(tmp_path / "work", Path.touch) as work:
        assert work.exists()
    assert list(tmp_path.iterdir()) == []


def held_elsewhere(path: Path, make: str) -> int:
    """Return the id of a process that works beside a path until it is killed."""
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", HOLDER, str(path), make], os.environ)
    wait_for(Path(f"{path}.ready").exists)
    return child


@pytest.mark.parametrize("make", ["mkdir", "touch"])
def test_what_a_process_holds_stays_until_it_is_killed(tmp_path: Path, make: str) -> None:
    child = held_elsewhere(tmp_path / "work", make)
    (work,) = tmp_path.glob(".work.*.tmp")
    assert not is_swept(work) and work.exists()
    os.kill(child, signal.SIGSTOP)  # it is waited for, as long as it lives
    assert not is_swept(work) and work.exists()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert work.exists()
    with held(tmp_path / "work", Path.mkdir) as mine:
        assert not work.exists() and mine.exists()
    assert not mine.exists()


def test_threads_hold_apart_and_what_failed_is_removed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), held(tmp_path / "work", Path.mkdir) as work:
        (work / "half").touch()
        assert not is_swept(work)
        raise RuntimeError
    assert list(tmp_path.iterdir()) == [] and is_swept(work)


def test_what_was_renamed_stays(tmp_path: Path) -> None:
    with held(tmp_path / "work", Path.touch) as work:
        work.replace(tmp_path / "work")
    assert list(tmp_path.iterdir()) == [tmp_path / "work"]


def test_what_was_swept_before_it_was_held_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.touch()

    flock = fcntl.flock

    def slow(handle: int, operation: int) -> None:
        if len(made) == 1 and made[0].exists():
            made[0].unlink()  # another process was faster
        flock(handle, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    with held(tmp_path / "work", make) as path:
        assert len(made) == 2 and path.exists()


def test_what_was_swept_while_it_was_made_is_made_again(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(path: Path) -> None:
        made.append(path)
        path.touch()
        if len(made) < 3:
            assert is_swept(path)
        if len(made) == 1:
            path.chmod(0o600)  # as a store gives access

    with held(tmp_path / "work", make) as path:
        assert len(made) == 3 and not is_swept(path) and path.exists()


def test_a_file_that_can_never_be_made_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="missing"), held(tmp_path / "missing" / "work", Path.touch):
        pass


def test_a_folder_that_keeps_no_new_file_is_an_error_and_no_endless_loop(tmp_path: Path) -> None:
    def vanishing(path: Path) -> None:
        raise FileNotFoundError(errno.ENOENT, "as in /proc", str(path))

    with pytest.raises(FileNotFoundError, match="as in /proc"), held(tmp_path / "board", vanishing):
        raise AssertionError("nothing was made")


def test_ctrl_c_while_a_folder_is_made_leaves_nothing(tmp_path: Path) -> None:
    def interrupted(path: Path) -> None:
        path.mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), held(tmp_path / "work", interrupted):
        raise AssertionError("nothing was made")
    assert list(tmp_path.iterdir()) == []


def test_without_locks_nothing_is_swept_and_nobody_is_waited_for(tmp_path: Path, monkeypatch) -> None:
    def unsupported(handle: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    path = tmp_path / "work"
    path.touch()
    assert not is_swept(path) and path.exists()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(
    ("parent_mode", "folder_mode", "file_mode"), [(0o2770, 0o770, 0o660), (0o755, 0o700, 0o600), (0o777, 0o700, 0o600)]
)
def test_a_folder_in_a_shared_one_is_shared_and_any_other_is_private(
    tmp_path: Path, umask: int, parent_mode: int, folder_mode: int, file_mode: int
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    root.chmod(parent_mode)
    before = os.umask(umask)
    try:
        private_folder(root / "notes" / "inner")
        store = Store(root).about("ward")
        store.make("index", "0" * 32, lambda folder: (folder / "x").write_text("x") and None)
        store.remember("key", {"rows": 1})
        with exclusive(root / "lock"):
            assert (root / "lock").stat().st_mode & 0o777 == file_mode
    finally:
        os.umask(before)
    found = {each: each.stat().st_mode & 0o777 for each in root.rglob("*")}
    assert {mode for each, mode in found.items() if each.is_dir()} == {folder_mode}
    assert {mode for each, mode in found.items() if each.is_file()} == {file_mode}
