"""What every test may rely on: a current folder of its own, whatever a clone holds."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_a_test_begins_in_a_folder_of_its_own_without_results(tmp_path: Path) -> None:
    """`make run` leaves `results/` in the clone: a test that ran there would reuse them."""
    assert Path.cwd() == tmp_path
    assert not Path("results").exists()


def test_the_checks_run_the_tests_in_a_clone_that_holds_results() -> None:
    lines = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()
    commands = [line for line in lines if line.startswith("make ")]
    assert commands.index("make run") < commands.index("make test-all")
