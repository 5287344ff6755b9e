"""Every test file of the tree is collected: pytest skips folders of some names, such as `build`, by default."""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parent


def test_every_test_file_of_the_tree_is_collected():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-s", "-p", "support.collected_files"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True)
    lines = [line.partition("collected: ") for line in ended.stdout.splitlines()]
    collected = {Path(path) for _, mark, path in lines if mark}
    assert collected == set(TESTS.rglob("test_*.py")), ended.stderr
