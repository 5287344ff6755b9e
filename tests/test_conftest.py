"""What every test may rely on: a current folder of its own, whatever a clone holds."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path

import pytest

from support.fork_server import Command, ForkServer

ROOT = Path(__file__).parent.parent


def test_a_test_begins_in_a_folder_of_its_own_without_results(tmp_path: Path) -> None:
    """`make run` leaves `results/` in the clone: a test that ran there would reuse them."""
    assert Path.cwd() == tmp_path
    assert not Path("results").exists()


def test_the_checks_run_the_tests_in_a_clone_that_holds_results() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("make ")]
    assert commands.index("make run") < commands.index("make test-all")


def surroundings() -> tuple[object, ...]:
    logger = logging.getLogger("r2med")
    signals = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    return dict(os.environ), [*sys.argv], [*sys.path], Path.cwd(), [*logger.handlers], logger.level, signals


@pytest.mark.parametrize(
    "words", [["list", "suites"], ["run", "bm52"], ["run", "--no-such-option"], ["list", "x\u2192"]]
)
def test_a_command_in_this_process_ends_as_in_its_own_and_leaves_nothing(
    words: list[str], r2med: Command, fork_server: ForkServer, tmp_path: Path
) -> None:
    before = surroundings()
    here = r2med(*words)
    assert surroundings() == before
    assert here == fork_server.run(*words, cwd=tmp_path)
