"""The early floors stand alone: their tests pass where no later floor exists."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_imports import FLOORS, SOURCE

ROOT = Path(__file__).parents[1]
LAST = "evaluation"


def copied(folder: Path) -> Path:
    """Copy the package and its tests, without the floors after the last one and without tests of the whole.

    The public functions stay: each imports what it calls only when it is called.
    """
    later = [floor for floor in list(FLOORS)[list(FLOORS).index(LAST) + 1 :] if floor != "public"]
    leave = shutil.ignore_patterns("__pycache__", "node_modules")
    for source, name in ((SOURCE, "src/r2med"), (ROOT / "tests", "tests"), (ROOT / "docs/schemas", "docs/schemas")):
        shutil.copytree(source, folder / name, ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for floor in later:
        shutil.rmtree(folder / "src/r2med" / floor)
        shutil.rmtree(folder / "tests" / floor)
    for name in ("public", "fidelity"):
        shutil.rmtree(folder / "tests" / name)
    for path in (folder / "tests").glob("test_*.py"):
        path.unlink()
    return folder


@pytest.mark.slow
def test_the_tests_of_the_floors_up_to_evaluation_pass_without_the_later_floors(tmp_path: Path) -> None:
    """The quick tests of foundation, data and evaluation run. Those of models and systems, which take longest, are only
    collected: their modules import nothing of later floors.
    """
    folder = copied(tmp_path / "copy")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "R2MED_"))}
    environment["PYTHONPATH"] = str(folder / "src")  # before the installed package

    def python(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)

    used = python("-c", "import r2med; print(r2med.__file__)").stdout
    assert Path(used.strip()).is_relative_to(folder)
    run = ["-m", "pytest", "-m", "not slow", "-p", "no:cacheprovider", "--tb=short"]
    for words in (["--collect-only"], ["-n", "2", "tests/foundation", "tests/data", "tests/evaluation"]):
        done = python(*run, *words)
        assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
