"""The package works without a clone: wheel and source distribution are built, checked and installed elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest

from r2med import __version__
from support.processes import PATIENCE, environment
from support.pythons import other_pythons

ROOT = Path(__file__).parent.parent
SETTINGS = environment(PYTHONPATH="", PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
PIP = (sys.executable, "-m", "pip")
QUIET = ("--quiet", "--no-deps", "--no-compile")


def ended(*words: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        list(map(str, words)), cwd=cwd, env=SETTINGS, capture_output=True, text=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def empty_environment(home: Path, python: str = sys.executable) -> tuple[Path, Path]:
    """Make an environment without any package, and return its Python and its folder of packages."""
    ended(python, "-m", "venv", "--without-pip", home, cwd=home.parent)
    (site,) = home.glob("lib/python*/site-packages")
    return home / "bin/python", site


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the source distribution, and the wheel from it."""
    out = tmp_path_factory.mktemp("dist")
    ended(sys.executable, "-m", "build", "--no-isolation", "--outdir", out, ROOT, cwd=out)
    return out


def wheel_of(built: Path) -> Path:
    (wheel,) = built.glob(f"r2med-{__version__}-*.whl")
    return wheel


@pytest.mark.slow
def test_an_index_would_take_the_files_and_show_their_page(built: Path) -> None:
    files = sorted(built.iterdir())
    assert [path.suffix for path in files] == [".whl", ".gz"]
    checked = ended(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files, cwd=built)
    assert len(re.findall("PASSED", checked)) == 2


@pytest.mark.slow
def test_the_wheel_runs_the_demo_in_an_empty_environment(built: Path, tmp_path: Path) -> None:
    python, site = empty_environment(tmp_path / "empty")
    wheel = wheel_of(built)
    ended(*PIP, "--python", python, "install", *QUIET, wheel, cwd=tmp_path)
    # What the wheel needs is taken from here, so that nothing is fetched; r2med itself is not: its folder comes first.
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert ended(python, "-c", "import r2med; print(r2med.__file__)", cwd=elsewhere).startswith(str(site))
    told = ended(python.with_name("r2med"), "run", cwd=elsewhere)
    assert "hyde(author) → bm25" in told and "8 datasets, 64 queries" in told
    assert "to start" in ended(python.with_name("r2med"), cwd=elsewhere).lower()
    missing = {
        path.relative_to(ROOT / "src").as_posix()
        for path in (ROOT / "src").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not (site / path.relative_to(ROOT / "src")).exists()
    }
    assert missing == set()
    licences = {path.name for path in site.glob("r2med-*.dist-info/licenses/*")}
    assert licences == {"LICENSE", "THIRD_PARTY_NOTICES.md"}


@pytest.mark.slow
def test_the_source_distribution_installs_what_the_wheel_has(built: Path, tmp_path: Path) -> None:
    python, site = empty_environment(tmp_path / "empty")
    (site / "needs.pth").write_text(sysconfig.get_path("purelib"))
    (source,) = built.glob("r2med-*.tar.gz")
    ended(*PIP, "--python", python, "install", *QUIET, "--no-build-isolation", source, cwd=tmp_path)
    assert __version__ in ended(python.with_name("r2med"), "--version", cwd=tmp_path)
    names = {name for name in ZipFile(wheel_of(built)).namelist() if name.startswith("r2med/")}
    assert names == {path.relative_to(site).as_posix() for path in (site / "r2med").rglob("*") if is_source(path)}


def is_source(path: Path) -> bool:
    return path.is_file() and "__pycache__" not in path.parts


@pytest.mark.slow
def test_the_wheel_is_installed_and_imported_by_every_other_python_of_this_machine(built: Path, tmp_path: Path) -> None:
    """The dependencies of other versions would have to be fetched: `make release-check` runs the demo with them."""
    others = other_pythons()
    if not others:
        pytest.skip("no other Python from 3.11 on is installed")
    for number, other in enumerate(others):
        python, _ = empty_environment(tmp_path / str(number), other)
        ended(*PIP, "--python", python, "install", *QUIET, wheel_of(built), cwd=tmp_path)
        assert (
            ended(python, "-W", "error", "-c", "import r2med; print(r2med.__version__)", cwd=tmp_path).strip()
            == __version__
        )
