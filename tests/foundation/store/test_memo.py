"""One store for answers that were paid for or took long: no answer is asked for twice, by threads or by processes."""

import os
import platform
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.store import memo
from r2med.foundation.store.database import Database
from r2med.foundation.store.memo import MEMOS, Memo, Missing
from support.processes import wait_for


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "scores" / "model.sqlite"


def opened(file: Path) -> Memo[str]:
    return Memo(file, str.encode, lambda value: value.decode() if value != b"invalid" else None)


def upper(asked: list[bytes]) -> Callable[[Missing[str]], None]:
    """Return a function that answers each key in upper case, and notes it in `asked`."""

    def ask(missing: Missing[str]) -> None:
        for key in missing:
            asked.append(key)
            missing.put({key: key.decode().upper()})

    return ask


@pytest.mark.parametrize("folder", MEMOS)
def test_every_kind_asks_only_for_what_is_missing(tmp_path: Path, folder: str) -> None:
    asked: list[bytes] = []
    for keys in ([b"a", b"b", b"a"], [b"b", b"c"]):
        with opened(tmp_path / folder / "x.sqlite") as answers:
            found = answers.missing(keys).fill(upper(asked))
        assert found == {key: key.decode().upper() for key in keys}
    assert asked == [b"a", b"b", b"c"]


def test_unusable_invalid_and_unsaved_answers_are_asked_for_again(file: Path) -> None:
    asked: list[bytes] = []
    with opened(file) as answers:
        answers.put({b"a": "old", b"b": "invalid", b"c": "good"})
        missing = answers.missing([b"a", b"b", b"c", b"d"], lambda key, answer: answer != "old")
        assert missing.answers == {b"c": "good"}
        stored: list[bool] = []
        missing.fill(
            lambda wanted: wanted.put(dict.fromkeys(wanted, "new"), save=False), lambda new, kept: stored.append(kept)
        )
        assert missing.answers == {b"a": "new", b"b": "new", b"c": "good", b"d": "new"} and stored == [False]
        answers.missing([b"a", b"d"]).fill(upper(asked))
    assert asked == [b"d"], "an answer that was not saved"


def test_work_that_leaves_keys_without_an_answer_is_an_error_and_releases_them(file: Path) -> None:
    with opened(file) as answers, answers.claims() as later:
        with pytest.raises(RuntimeError, match="without 2 of its 2 answers"):
            answers.missing([b"a", b"b"]).fill(lambda missing: [*missing].clear())
        assert later.take([b"a", b"b"]) == [b"a", b"b"]


def test_a_large_work_is_claimed_block_by_block_so_that_others_can_share_it(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memo, "CLAIMS_AT_ONCE", 2)
    keys = [bytes([97 + number]) for number in range(6)]
    mine: list[bytes] = []
    theirs: list[bytes] = []

    def other() -> None:
        with opened(file) as answers:
            answers.missing(keys[2:]).fill(upper(theirs))

    def ask(missing: Missing[str]) -> None:
        for key in missing:
            if not theirs:
                beside = threading.Thread(target=other)
                beside.start()
                beside.join()
            mine.append(key)
            missing.put({key: key.decode().upper()})

    with opened(file) as answers:
        assert answers.missing(keys).fill(ask) == {key: key.decode().upper() for key in keys}
    assert (mine, theirs) == (keys[:2], keys[2:])


def test_a_thread_waits_for_what_another_asks_for(file: Path) -> None:
    begun, ended, asked = threading.Event(), threading.Event(), list[bytes]()

    def slow(missing: Missing[str]) -> None:
        begun.set()
        ended.wait()
        upper(asked)(missing)

    def first() -> None:
        with opened(file) as answers:
            answers.missing([b"a"]).fill(slow)

    beside = threading.Thread(target=first)
    beside.start()
    begun.wait()
    with opened(file) as answers:
        threading.Timer(0.01, ended.set).start()
        kept: list[bool] = []
        assert answers.missing([b"a"]).fill(upper(asked), lambda new, stored: kept.append(stored)) == {b"a": "A"}
    beside.join()
    assert asked == [b"a"] and kept == [True]


CLAIMER = """
import signal, sys
from pathlib import Path
from r2med.foundation.store.memo import Memo
with Memo(Path(sys.argv[1]), str.encode, bytes.decode) as memo, memo.claims() as mine:
    assert mine.take([b"k"]) == [b"k"]
    Path(sys.argv[1] + ".ready").touch()
    signal.pause()
"""


def full(*args: object, **settings: object) -> None:
    raise UserError("the disk is full")


def test_a_claim_belongs_to_its_owner_until_it_is_released_or_killed(file: Path) -> None:
    with opened(file) as one, opened(file) as other:
        with one.claims() as mine, other.claims() as theirs:
            assert mine.take([b"k"]) == [b"k"]
            assert theirs.take([b"k", b"l"]) == [b"l"] and theirs.others
        with other.claims() as theirs:
            assert theirs.take([b"k"]) == [b"k"], "released"
        with pytest.MonkeyPatch.context() as patch, pytest.raises(UserError, match="full"), one.claims() as mine:
            mine.take([b"m"])
            patch.setattr(Database, "write", full)
        with other.claims() as theirs:
            assert theirs.take([b"m"]) == [b"m"], "it could not be released, and nobody holds it"
    child = os.posix_spawn(sys.executable, [sys.executable, "-c", CLAIMER, str(file)], os.environ)
    wait_for(Path(f"{file}.ready").exists)
    with opened(file) as other, other.claims() as theirs:
        os.kill(child, signal.SIGSTOP)  # a stopped process is waited for
        assert theirs.take([b"k"]) == []
        assert theirs.others == (f"process {child} on {platform.node()}",)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert theirs.take([b"k"]) == [b"k"]
    with opened(file) as other, other.claims() as theirs:
        theirs.take([b"k"])
    assert [*file.with_suffix(".owners").iterdir()] == []
