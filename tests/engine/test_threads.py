"""Work on all cores: results in order, few in flight, each item once, and the number of cores as the user says."""

import os
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from r2med.engine import cores, map_threads, threads
from r2med.engine.threads import share


@pytest.mark.parametrize(("said", "cores_used"), [("1", 1), ("3", 3), ("0", 1), ("9" * 5000, 999_999)])
def test_the_number_of_cores_is_what_the_environment_says(
    monkeypatch: pytest.MonkeyPatch, said: str, cores_used: int
) -> None:
    monkeypatch.setenv("R2MED_THREADS", said)
    assert cores() == cores_used


@pytest.mark.parametrize("said", ["", "-1", "many", "1.5"])
def test_what_is_no_number_of_cores_is_ignored(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.delenv("R2MED_THREADS", raising=False)
    default = cores()
    monkeypatch.setenv("R2MED_THREADS", said)
    assert cores() == default >= 1


def test_results_come_in_the_order_of_the_items(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MED_THREADS", "4")
    last = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            last.wait(30)  # the first is the slowest
        elif item == 3:
            last.set()
        return item * item

    assert list(map_threads(work, range(20))) == [item * item for item in range(20)]


def test_only_a_few_items_are_taken_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MED_THREADS", "2")
    taken: list[int] = []

    def items():
        for item in range(100):
            taken.append(item)
            yield item

    results = map_threads(lambda item: item, items())
    assert next(results) == 0
    assert len(taken) == 5
    assert list(results) == list(range(1, 100))


def test_a_fault_of_one_item_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R2MED_THREADS", "2")

    def work(item: int) -> int:
        if item == 3:
            raise ValueError("broken")
        return item

    with pytest.raises(ValueError, match="broken"):
        list(map_threads(work, range(100)))


@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 100])
def test_shared_work_is_done_once_for_every_item(threads: int, count: int) -> None:
    done: list[int] = []
    share(done.append, range(count), threads)
    assert sorted(done) == list(range(count))


def test_shared_work_is_done_on_several_threads_at_a_time() -> None:
    together = threading.Barrier(3, timeout=30)
    share(lambda _: together.wait(), range(3), 3)


def test_a_thread_that_comes_late_does_not_end_the_wait_for_one_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Callable[[], None]] = []
    monkeypatch.setattr(threads, "_helpers", lambda: SimpleNamespace(ask=lambda task, _: asked.append(task)))
    here, begun, done = threading.get_ident(), threading.Event(), []

    def work(item: int) -> None:
        if item == 0:
            threading.Thread(target=asked[0]).start()
            begun.wait(30)
        elif threading.get_ident() != here:
            begun.set()
            time.sleep(0.1)  # the first thread has nothing more to do
            asked[1]()
            time.sleep(0.1)
        done.append(item)

    share(work, range(3), 3)
    assert sorted(done) == [0, 1, 2]


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_fault_in_shared_work_is_told_when_all_threads_have_ended(where: str) -> None:
    here, running, together = threading.get_ident(), [], threading.Barrier(3, timeout=30)

    def work(item: int) -> None:
        running.append(item)
        try:
            together.wait()
            if (threading.get_ident() == here) == (where == "here"):
                raise ValueError("broken")
        finally:
            running.remove(item)

    with pytest.raises(ValueError, match="broken"):
        share(work, range(3), 3)
    assert not running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_shared_work_is_done_in_a_forked_process_too() -> None:
    share(lambda _: None, range(4), 2)
    child = os.fork()
    if not child:
        share(lambda _: None, range(4), 2)
        os._exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
