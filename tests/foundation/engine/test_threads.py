"""Work on all cores: results in order, few items at a time, and the number of cores that the user sets."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from r2med.foundation.engine import cores, map_threads, one_blas_thread, share


@pytest.mark.parametrize(("said", "cores_used"), [("1", 1), ("3", 3), ("0", 1), ("9" * 5000, 999_999)])
def test_the_environment_sets_the_number_of_cores(monkeypatch: pytest.MonkeyPatch, said: str, cores_used: int) -> None:
    monkeypatch.setenv("R2MED_THREADS", said)
    assert cores() == cores_used


@pytest.mark.parametrize("said", ["", "-1", "many", "1.5"])
def test_an_invalid_number_of_cores_is_ignored(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
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


@pytest.mark.parametrize("cores_used", ["1", "2", "8"])
def test_threads_share_the_items_and_results_keep_their_order(monkeypatch: pytest.MonkeyPatch, cores_used: str) -> None:
    monkeypatch.setenv("R2MED_THREADS", cores_used)
    with ThreadPoolExecutor(8) as pool:
        assert share(lambda item: item * 2, range(100), pool) == [*range(0, 200, 2)]
        assert share(lambda item: item, [], pool) == []
        with pytest.raises(ZeroDivisionError):
            share(lambda item: 1 // item, [1, 0, 1], pool)


def test_the_threads_of_the_blas_are_given_back_when_the_last_block_ends() -> None:
    def used() -> list[int]:
        return [each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"]

    np.zeros((2, 2)) @ np.zeros((2, 2))
    before = used()
    first, second = one_blas_thread(), one_blas_thread()
    first.__enter__()
    second.__enter__()  # such as another question to a server
    first.__exit__(None, None, None)
    assert set(used()) == {1}
    second.__exit__(None, None, None)
    assert used() == before
