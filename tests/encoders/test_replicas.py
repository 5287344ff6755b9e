"""Models in memory: the least used goes first, and all go when a new one does not fit beside them."""

import pytest

from r2med.core.errors import UserError
from r2med.encoders import replicas
from r2med.runtime.setup import Setup


@pytest.fixture(autouse=True)
def empty():
    replicas.forget_models()
    yield
    replicas.forget_models()


def test_the_least_used_is_given_up():
    loads = []
    for name in ["a", "b", "c", "a", "d", "a", "b"]:
        replicas.cached_model(name, Setup(), lambda name=name: loads.append(name) or name)
    assert loads == ["a", "b", "c", "d", "b"]


def test_others_make_room():
    replicas.cached_model("a", Setup(), lambda: "a")

    def load():
        if replicas._kept:
            raise MemoryError
        return "large"

    assert replicas.cached_model("large", Setup(), load) == "large"
    assert [key[0] for key in replicas._kept] == ["large"]


def test_what_never_fits_is_one_line():
    def load():
        raise MemoryError

    with pytest.raises(UserError, match="does not fit into the device's memory"):
        replicas.cached_model("huge", Setup(), load)
