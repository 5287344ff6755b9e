"""A Setup is a value: making one has no effect, and each flag is made from its field."""

import inspect
import os
import subprocess
import sys
from dataclasses import fields

from r2med.cli.options import _parameter
from r2med.foundation.runtime.setup import Setup, printed_bytes

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


def test_each_flag_has_the_default_and_the_help_of_its_field():
    for field in (each for each in fields(Setup) if each.metadata["flag"].panel):
        parameter = _parameter(field, "")
        [option] = parameter.annotation.__metadata__
        assert option.help == field.metadata["flag"].help
        default = printed_bytes(field.default) if field.name == "memory" else field.default
        assert parameter.default == (None if default in ("", (), None) else default)
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
