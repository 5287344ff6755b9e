"""Every test file of the tree is collected: pytest skips folders of some names, such as `build`, by default."""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

TESTS = Path(__file__).parent


def test_no_test_file_lies_in_a_folder_that_is_skipped(pytestconfig):
    skipped = pytestconfig.getini("norecursedirs")
    folders = {part for path in TESTS.rglob("test_*.py") for part in path.relative_to(TESTS).parts[:-1]}
    assert folders
    assert [name for name in folders if any(fnmatch(name, pattern) for pattern in skipped)] == []


@pytest.mark.slow
def test_every_test_file_of_the_tree_is_collected():
    command = [sys.executable, "-m", "pytest", "--collect-only", "-s", "-p", "support.collected_files"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS), "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(command, cwd=TESTS.parent, env=environment, capture_output=True, text=True)
    lines = [line.partition("collected: ") for line in ended.stdout.splitlines()]
    collected = {Path(path) for _, mark, path in lines if mark}
    assert collected == set(TESTS.rglob("test_*.py")), ended.stderr
