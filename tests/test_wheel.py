"""The wheel works without a clone: cards, prompts, the demo and the pages of the board are in it."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from support.processes import PATIENCE, environment

ROOT = Path(__file__).parent.parent
SETTINGS = environment(PYTHONPATH="", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")


def ended(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=SETTINGS, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_runs_the_demo_in_an_empty_environment(tmp_path: Path) -> None:
    flags = ("--quiet", "--no-deps")
    pip = ("-m", "pip", "wheel", *flags, "--no-build-isolation", ROOT, "-w", tmp_path)
    ended(sys.executable, *pip, cwd=tmp_path)
    [wheel] = tmp_path.glob("r2med-*.whl")
    home = tmp_path / "empty"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    [site] = home.glob("lib/python*/site-packages")
    ended(sys.executable, "-m", "pip", "--python", python, "install", *flags, wheel, cwd=tmp_path)
    # What the wheel needs is taken from here, so that nothing is fetched; r2med itself is not: its folder comes first.
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert ended(python, "-c", "import r2med; print(r2med.__file__)", cwd=elsewhere).startswith(str(site))
    told = ended(home / "bin" / "r2med", "run", cwd=elsewhere)
    assert "hyde(author) → bm25" in told and "8 datasets, 64 queries" in told
    assert "to start" in ended(home / "bin" / "r2med", cwd=elsewhere).lower()
    missing = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not (site / path.relative_to(ROOT / "src")).exists()
    }
    assert missing == set()
