"""A Setup is a value: making one has no effect, and each flag is made from its field."""

import os
import subprocess
import sys

import pytest

from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import running
from r2med.foundation.runtime.setup import Setup

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
