"""A Setup is a value: making one has no effect, and each flag is made from its field."""

import os
import pickle
import subprocess
import sys

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import running
from r2med.foundation.runtime.setup import Setup
from r2med.foundation.store import Store
from support.facts import states

CODE = """
import os, sys
from r2med.foundation.runtime.setup import Setup
before, loaded = dict(os.environ), set(sys.modules)
Setup(offline=True, device="cuda", engine="ray", budget=1.0)
assert dict(os.environ) == before
assert set(sys.modules) == loaded
assert not {"torch", "transformers", "ray", "httpx2"} & set(sys.modules)
assert not os.listdir(".")
"""


def test_making_a_setup_changes_nothing(tmp_path):
    environment = {**os.environ, "R2MED_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-B", "-c", CODE], cwd=tmp_path, env=environment, check=True)
    assert not list(tmp_path.iterdir())


def test_settings_beside_a_setup_and_texts_for_numbers_are_refused():
    with pytest.raises(UserError, match="outputt"), running(Setup(), outputt="x"):
        pass
    with pytest.raises(UserError, match=r"--depth nonsense.*whole number"):
        Setup(depth="nonsense")
    with running(None, depth=7) as runtime:
        assert runtime.setup.depth == 7


@pytest.mark.parametrize(
    ("name", "value", "facts"),
    [
        ("depth", 0, ["depth (--depth 0)", "a whole number, 1 or more"]),
        ("attempts", "often", ["attempts=often", "a whole number, 1 or more"]),
        ("repeat", 1000, ["repeat=1000", "a whole number from 0 to 999"]),
        ("deadline", -1.0, ["deadline (--deadline -1)", "a number of seconds above 0"]),
        ("budget", float("nan"), ["budget (--budget nan)", "a number of dollars, 0 or more"]),
        ("budget", "much", ["budget (--budget much)", "a number of dollars, 0 or more"]),
        ("memory", "12K", ["memory (--memory 12K)", "512M or 4G"]),
        ("model_paths", ["bge"], ["model_paths (--model-path bge)", "NAME=FOLDER"]),
        ("generations", "not/there", ["generations (--generations not/there)", "no such folder"]),
        ("device", 1, ["device (--device 1)", "a text"]),
    ],
)
def test_a_wrong_value_is_one_line_with_its_setting_and_what_would_be_right(name, value, facts):
    with pytest.raises(UserError) as caught:
        Setup(**{name: value})
    states(caught.value, *facts)


def test_values_are_read_as_they_are_typed(tmp_path):
    setup = Setup(memory="4G", model_paths=["bge=~/bge"], generations=str(tmp_path), depth="7")
    assert setup.memory == 4 << 30 and setup.depth == 7 and setup.recorded
    assert setup.model_paths == (("bge", tmp_path.home() / "bge"),)
    assert Setup(model_paths={"bge": "w"}) == Setup(model_paths=(("bge", "w"),)) == Setup(model_paths="bge=w")


def test_a_setup_prints_what_was_changed_and_another_machine_gets_what_models_need(tmp_path):
    store = Store(tmp_path / "store")
    setup = Setup(depth=7, budget=1.0, store=store, generations=tmp_path, candidates=tmp_path / "run", engine="ray")
    assert repr(Setup(depth=7, budget=1.0, store=store)) == "Setup(depth=7)"
    sent = pickle.loads(pickle.dumps(setup))  # noqa: S301  # of our own
    assert sent == Setup(depth=7, recorded=True)
    assert (sent.budget, sent.store, sent.engine, sent.generations, sent.candidates) == (
        None,
        None,
        "threads",
        None,
        None,
    )


def test_setups_that_give_the_same_results_are_equal(tmp_path):
    other = Setup(budget=1.0, store=Store(tmp_path), engine="ray", models_kept=9)
    assert other == Setup() and hash(other) == hash(Setup())
    assert Setup(depth=7) != Setup() and Setup() != "Setup()"
    assert other.with_settings(depth=7) == Setup(depth=7) and other.with_settings(depth=7).budget == 1.0
    with pytest.raises(UserError, match=r"no setting 'deph' \(did you mean depth\?\)"):
        other.with_settings(deph=7)
