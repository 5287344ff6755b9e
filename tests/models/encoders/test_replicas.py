"""Models in memory: the least used is dropped first, and all are dropped if a new one does not fit beside them."""

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.models.encoders.replicas import cached_model


def test_the_least_used_model_is_dropped():
    runtime, loads = Runtime(models_kept=3), []
    for name in ["a", "b", "c", "a", "d", "a", "b"]:
        cached_model(name, runtime, lambda name=name: loads.append(name) or name)
    assert loads == ["a", "b", "c", "d", "b"]


def test_other_models_are_dropped_to_make_room():
    runtime = Runtime()
    cached_model("a", runtime, lambda: "a")

    def load():
        if len(runtime.models):
            raise MemoryError
        return "large"

    assert cached_model("large", runtime, load) == "large"
    assert len(runtime.models) == 1


def test_a_model_that_never_fits_gives_a_one_line_error():
    def load():
        raise MemoryError

    with pytest.raises(UserError, match="does not fit into the memory of the device"):
        cached_model("huge", Runtime(), load)
