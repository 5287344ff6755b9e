"""Objects that are made once and shared by threads."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from r2med.foundation.core.shared_objects import SharedObjects

SECONDS = 120
"""Far more than any machine needs: a test that waits so long hangs."""


def test_an_object_is_made_once_however_many_threads_want_it():
    objects, made = SharedObjects(), []
    with ThreadPoolExecutor(8) as threads:
        shared = list(threads.map(lambda _: objects.get("a", lambda: made.append(1) or object()), range(32)))
    assert len(made) == 1 and len({id(each) for each in shared}) == 1


def test_no_object_waits_for_another_to_be_made():
    """Both are being made at the same time, or the barrier would never open."""
    objects, both = SharedObjects(), threading.Barrier(2)
    with ThreadPoolExecutor(2) as threads:
        made = [threads.submit(objects.get, key, lambda: both.wait(SECONDS)) for key in "ab"]
        assert sorted(each.result(SECONDS) for each in made) == [0, 1]


def test_the_least_recently_used_is_given_up_first():
    objects, made = SharedObjects(limit=2), []
    for key in "abacabc":
        objects.get(key, lambda key=key: made.append(key))
    assert made == ["a", "b", "c", "b", "c"] and len(objects) == 2


def test_an_object_that_could_not_be_made_is_tried_again():
    objects = SharedObjects()
    with pytest.raises(ZeroDivisionError):
        objects.get("a", lambda: 1 // 0)
    assert objects.get("a", lambda: 5) == 5


def test_clearing_closes_what_can_be_closed_the_latest_first():
    closed = []

    class Closing:
        def __init__(self, name):
            self.name = name

        def close(self):
            closed.append(self.name)

    objects = SharedObjects()
    objects.get(1, lambda: Closing("first"))
    objects.get(2, lambda: "nothing to close")
    objects.get(3, lambda: Closing("last"))
    objects.clear()
    assert closed == ["last", "first"] and len(objects) == 0
