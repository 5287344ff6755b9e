"""The scripts' functions that draw nothing, tested by node's own runner where there is a node."""

import shutil
import subprocess
from pathlib import Path

import pytest

TESTS = Path(__file__).with_name("pure_functions.test.js")


def test_the_functions_that_draw_nothing_pass_their_tests_in_node() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node: the functions that draw nothing are tested in the browser only")
    done = subprocess.run([node, "--test", "--test-reporter=tap", str(TESTS)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# pass 14" in done.stdout  # a file without tests passes too
