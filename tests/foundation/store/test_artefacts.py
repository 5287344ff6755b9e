"""The store: a folder is complete or absent, made once, and known by its key."""

from __future__ import annotations

import errno
import fcntl
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import Store, artefacts, default_store
from r2med.foundation.store.files import write_array


class Builder:
    """Writes one array and counts how often."""

    def __init__(self, value: int = 7) -> None:
        self.times = 0
        self.value = value

    def __call__(self, folder: Path) -> dict[str, Any]:
        self.times += 1
        write_array(folder / "numbers.npy", np.array([self.value]))
        return {"words": 3}


def test_an_artefact_is_built_once(store: Store) -> None:
    build = Builder()
    first, second = (store.make("index", "key", build) for _ in range(2))
    assert build.times == 1
    assert (first.path, first.meta) == (second.path, second.meta)
    assert first.array("numbers").tolist() == [7]
    assert (first.path / "numbers.npy").is_file()


def test_of_several_that_want_the_same_one_builds_and_the_others_wait(store: Store) -> None:
    built: list[int] = []
    together = threading.Barrier(3)

    def want(number: int) -> list[int]:
        def build(folder: Path) -> dict[str, Any]:
            built.append(number)
            threading.Event().wait(0.3)
            return Builder(number)(folder)

        together.wait()
        values: list[int] = Store(store.root).make("index", "key", build).array("numbers").tolist()
        return values

    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(want, range(3))) == [built[:1]] * 3 and len(built) == 1


def test_the_metadata_hold_what_was_given_and_the_seconds_it_took(store: Store) -> None:
    meta = store.make("index", "key", Builder()).meta
    assert meta["words"] == 3
    assert 0 <= meta["seconds"] < 60


def test_what_is_not_there_is_none(store: Store) -> None:
    assert store.get("index", "key") is None
    assert store.recall("key") is None


def test_kinds_and_keys_keep_artefacts_apart(store: Store) -> None:
    for number, (kind, key) in enumerate([("a", "x"), ("a", "y"), ("b", "x")]):
        store.make(kind, key, Builder(number))
    found = [store.make(kind, key, Builder()).array("numbers")[0] for kind, key in [("a", "x"), ("a", "y"), ("b", "x")]]
    assert found == [0, 1, 2]


def test_a_build_that_fails_leaves_nothing(store: Store) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        store.make("index", "key", fail)
    assert not (store.root / "index").exists() and not list(store.root.rglob("half"))
    assert store.get("index", "key") is None


def test_a_fresh_store_has_nothing_that_it_did_not_make(store: Store) -> None:
    build = Builder()
    store.make("index", "key", build)
    store.remember("note", {"a": 1})
    again = store.with_policy("fresh")
    assert again.get("index", "key") is None
    assert again.recall("note") is None
    for _ in range(2):
        again.make("index", "key", build)
    assert build.times == 2
    again.remember("note", {"a": 1})
    assert again.recall("note") == {"a": 1}
    assert store.get("index", "key") is not None


def test_a_fresh_store_of_a_fresh_store_is_the_same(store: Store) -> None:
    again = store.with_policy("fresh")
    again.make("index", "key", Builder())
    assert again.with_policy("fresh").get("index", "key") is not None


def test_a_live_store_keeps_artefacts_but_no_answers(store: Store) -> None:
    live = store.with_policy("live")
    live.make("index", "key", Builder())
    assert store.get("index", "key") is not None
    file = live.memo_file("journal", "chat")
    assert file != store.memo_file("journal", "chat") and file.parents[1].is_dir()
    assert live.memo_file("api", "openai") == store.memo_file("api", "openai"), "vectors contain no text"
    live.close()
    assert not file.parents[1].exists() and live.with_policy("live") is live


def test_a_live_store_that_cannot_be_written_makes_what_it_lacks_elsewhere(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = store.make("index", "sound", Builder())
    before = sorted(store.root.rglob("*"))
    monkeypatch.setattr(artefacts.os, "access", lambda path, mode: False)
    live, other = store.with_policy("live"), Builder(8)
    assert live.make("index", "sound", other).path == kept.path
    assert [live.make("index", key, other).array("numbers").tolist() for key in ("other", "new", "new")] == [[8]] * 3
    live.remember("fact", {"value": 1})
    answers = live.memo_file("journal", "chat").parents[1]
    assert live.recall("fact") == {"value": 1} and answers.is_dir() and other.times == 2
    live.close()
    assert sorted(store.root.rglob("*")) == before and not answers.exists()


def test_what_a_store_opened_is_shared_until_it_is_closed(store: Store) -> None:
    live = store.with_policy("live")
    first = live.opened("searcher", object)
    assert live.opened("searcher", object) is first
    live.close()
    assert live.opened("searcher", object) is not first


def test_what_is_redone_with_another_outcome_is_replaced(store: Store) -> None:
    store.make("index", "key", Builder(1))
    store.with_policy("fresh").make("index", "key", Builder(2))
    found = store.get("index", "key")
    assert found is not None
    assert found.array("numbers").tolist() == [2]


def test_a_folder_without_metadata_is_none_of_ours_and_is_replaced(store: Store) -> None:
    (store.root / "index" / "key").mkdir(parents=True)
    assert store.get("index", "key") is None
    assert store.make("index", "key", Builder()).array("numbers").tolist() == [7]


def test_a_folder_handed_in_becomes_an_artefact_and_a_second_one_is_dropped(store: Store) -> None:
    for number in (1, 2):
        with store.scratch() as scratch:
            Builder(number)(scratch)
            artefact = store.add("corpus", "key", scratch, {"rows": number})
        assert not scratch.exists()
        assert (artefact.array("numbers").tolist(), artefact.meta) == ([1], {"rows": 1})


def test_scratch_folders_of_the_dead_go_and_those_of_the_living_stay(store: Store) -> None:
    with store.scratch() as mine:
        dead = mine.with_name(f".work.{1:032x}.tmp")
        dead.mkdir()
        (dead / "file").touch()
        with store.scratch():
            assert mine.exists() and not dead.exists()
    assert list(mine.parent.iterdir()) == []


def killed_builder(root: Path) -> None:
    """Begin an artefact in a process that is killed while it builds."""
    code = (
        "import os, signal, sys\n"
        "from r2med.foundation.store import Store\n"
        "def build(folder):\n"
        "    (folder / 'half').touch()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Store(sys.argv[1]).make('index', 'key', build)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, str(root)], check=False).returncode == -signal.SIGKILL


def test_what_a_killed_builder_left_goes_at_once(store: Store) -> None:
    killed_builder(store.root)
    assert store.get("index", "key") is None and len(list(store.root.rglob("half"))) == 1
    with store.scratch():
        assert not list(store.root.rglob("half"))
    assert store.make("index", "key", Builder()).array("numbers").tolist() == [7]
    assert [path.name for path in (store.root / "index").iterdir()] == ["key"]
    assert not list((store.root / "scratch").iterdir()) and not list((store.root / "locks").iterdir())


def test_what_a_killed_builder_left_goes_also_if_nothing_is_missing(store: Store) -> None:
    store.make("index", "other", Builder())
    killed_builder(store.root)
    store.make("index", "other", Builder())
    assert not list(store.root.rglob("half"))


def test_a_fact_is_remembered_until_it_is_forgotten(store: Store) -> None:
    store.remember("key", {"rows": 3, "name": "é"})
    assert Store(store.root).recall("key") == {"rows": 3, "name": "é"}
    store.remember("key", {"rows": 4})
    assert store.recall("key") == {"rows": 4}
    store.forget("key")
    store.forget("key")
    assert store.recall("key") is None


@pytest.fixture
def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks, as NFS and Lustre may be."""

    def unsupported(handle: int, operation: int) -> None:
        raise OSError(errno.ENOTSUP, "no locks here")

    monkeypatch.setattr(fcntl, "flock", unsupported)


@pytest.mark.usefixtures("without_locks")
def test_without_locks_an_artefact_is_built_and_the_work_of_others_stays(store: Store) -> None:
    with store.scratch() as others:
        store.make("index", "key", Builder())
        assert others.exists()
    assert [path.name for path in (store.root / "index").iterdir()] == ["key"]


@pytest.mark.usefixtures("without_locks")
def test_without_locks_two_may_build_the_same_and_both_have_it(store: Store) -> None:
    slow = Builder(1)

    def overtaken(folder: Path) -> dict[str, Any]:
        Store(store.root).make("index", "key", Builder(2))
        return slow(folder)

    artefact = store.make("index", "key", overtaken)
    assert artefact.array("numbers").tolist() == [2]
    assert [path.name for path in (store.root / "index").iterdir()] == ["key"]


def test_making_leaves_no_lock_behind(store: Store) -> None:
    store.make("index", "key", Builder())
    assert list((store.root / "locks").iterdir()) == []


def test_the_users_store_lies_in_the_cache_folder_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("R2MED_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    root = default_store().root
    assert root.is_relative_to(tmp_path) and root.name == "r2med"


def test_the_home_of_nobody_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MED_HOME", "~nosuch/r2med")
    with pytest.raises(
        UserError, match="R2MED_HOME=~nosuch/r2med names the home folder of an unknown user: set R2MED_HOME"
    ):
        default_store()


def test_the_users_store_lies_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("R2MED_HOME", str(tmp_path))
    assert default_store().root == tmp_path
    monkeypatch.delenv("R2MED_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert default_store().root == tmp_path / "cache" / "r2med"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_store().root == tmp_path / ".cache" / "r2med"


def test_without_a_home_folder_the_user_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("R2MED_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(UserError, match="set R2MED_HOME"):
        default_store()


def test_two_fresh_views_that_make_the_same_keep_the_last_and_use_their_own(store: Store) -> None:
    store.make("index", "key", Builder(1))
    first, second = (Store(store.root).with_policy("fresh") for _ in range(2))
    for number, fresh in enumerate((first, second), 2):
        with fresh.scratch() as scratch:
            Builder(number)(scratch)
            assert fresh.add("index", "key", scratch, {}).array("numbers").tolist() == [number]
    assert first.get("index", "key") is not None and not list((store.root / "scratch").iterdir())
