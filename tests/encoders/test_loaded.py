"""Models in memory: the least used goes first, and all go when a new one does not fit beside them."""

import pytest

from r2med.encoders import loaded as models
from r2med.errors import UserError


@pytest.fixture(autouse=True)
def empty():
    models.forget()
    yield
    models.forget()


def test_the_least_used_is_given_up():
    loads = []
    for name in ["a", "b", "c", "a", "d", "a", "b"]:
        models.loaded(name, lambda name=name: loads.append(name) or name)
    assert loads == ["a", "b", "c", "d", "b"]


def test_others_make_room():
    models.loaded("a", lambda: "a")

    def load():
        if models._kept:
            raise MemoryError
        return "large"

    assert models.loaded("large", load) == "large"
    assert list(models._kept) == ["large"]


def test_what_never_fits_is_one_line():
    def load():
        raise MemoryError

    with pytest.raises(UserError, match="does not fit into the device's memory"):
        models.loaded("huge", load)
