"""Two users of one group work on one store at the same time, whatever the umask of either."""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import r2med
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.store import Store, sharing
from r2med.foundation.store.memo import Memo, Missing
from support.datasets import random_folder
from support.processes import wait_for

pytestmark = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become two other users"
)
GROUP, USERS = 64_123, (64_201, 64_202)
SYSTEMS = ["bm25", "bm25(k1=1.2)", "rm3 → bm25"]


def as_user(user: int, umask: int, group: int, out: Path, work: Callable[[], object]) -> int:
    """Return the id of a child of another user who does some work; its errors are written to `out`."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.umask(umask)
        os.setgroups([GROUP])
        os.setgid(group)
        os.setuid(user)
        work()
        code = 0
    except BaseException:
        out.write_text(traceback.format_exc())
    finally:
        os._exit(code)


def answer(asked: Path, missing: Missing[str]) -> None:
    for key in missing:
        with asked.open("ab") as file:
            file.write(key)
        missing.put({key: f"answer {key!r}"})


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that a group shares, with a folder of results for each user."""
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o055 != 0o055:
            folder.chmod(folder.stat().st_mode | 0o055)
    root = tmp_path / "team"
    root.mkdir()
    os.chown(root, 0, GROUP)
    root.chmod(0o770)
    for user in USERS:
        (tmp_path / str(user)).mkdir()
        os.chown(tmp_path / str(user), user, -1)
    return root


@pytest.mark.parametrize("umasks", [(0o077, 0o077), (0o022, 0o077), (0o002, 0o022)])
@pytest.mark.parametrize("groups", [(GROUP, GROUP), USERS], ids=["their first group", "a further group"])
def test_what_one_makes_the_other_uses_and_nothing_is_refused(
    shared: Path, tmp_path: Path, umasks: tuple[int, int], groups: tuple[int, int]
) -> None:
    data = random_folder(tmp_path / "mini", documents=200)
    for each in (data, *data.rglob("*")):
        each.chmod(0o755)

    # The users may not be able to read the package, so that it is imported, and its files are read, before they come.
    r2med.run(SYSTEMS, data, out=tmp_path / "first", setup=Runtime(store=Store(tmp_path / "other")))

    def work(user: int) -> None:
        results = r2med.run(
            SYSTEMS,
            data, out=tmp_path / str(user) / "results", setup=Runtime(store=Store(shared)),
        )  # fmt: skip
        assert not results.errors, results.errors
        with Memo(shared / "scores" / "model.sqlite", str.encode, bytes.decode) as memo:
            memo.missing([bytes([each]) for each in range(200)]).fill(partial(answer, tmp_path / str(user) / "asked"))

    children = [
        as_user(user, umask, group, tmp_path / str(user) / "error", lambda user=user: work(user))
        for user, umask, group in zip(USERS, umasks, groups, strict=True)
    ]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    said = "\n".join(file.read_text() for file in tmp_path.glob("*/error"))
    assert codes == [0, 0], said
    assert "damaged" not in said
    asked = [file.read_bytes() for file in tmp_path.glob("*/asked")]
    assert sum(map(len, asked)) == 200, "no question is asked twice"
    for path in shared.rglob("*"):
        assert path.stat().st_gid == GROUP, path
        assert path.stat().st_mode & 0o777 == (0o770 if path.is_dir() else 0o660), path


def test_a_lock_to_which_another_user_gives_access_just_now_is_waited_for(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "ACCESS_SECONDS", 60.0)
    lock, begun = shared / "lock", tmp_path / str(USERS[0]) / "begun"
    lock.touch(mode=0o600)

    def work() -> None:
        begun.touch()
        with sharing.exclusive(lock):
            pass

    child = as_user(USERS[0], 0o077, GROUP, tmp_path / str(USERS[0]) / "error", work)
    wait_for(begun.exists)
    threading.Event().wait(0.1)
    sharing.give_access(lock)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
