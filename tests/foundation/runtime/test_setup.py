"""A Setup is a value: making one has no effect, and each flag is made from its field."""

import os
import subprocess
import sys

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
