"""The release checklist of CONTRIBUTING.md: `make release-check` runs it after all checks and tests.

It builds dist/, installs the wheel with its dependencies into a new environment of every Python that is installed, and
runs the demo there. Packages are fetched from the index that pip uses. Nothing is published.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))  # the list of installed Pythons is that of the tests

LONGEST_BULLET = 160
TESTS = ("test_install_commands.py", "test_package.py", "test_reference_pages.py", "test_docs.py")


def version(root: Path) -> str:
    """Return the version that the source states."""
    (found,) = re.findall(r'^__version__ = "(.+)"$', _text(root / "src/r2med/foundation/core/version.py"), re.MULTILINE)
    return str(found)


def version_faults(root: Path) -> list[str]:
    """Return where the version is not that of the source: the first section of the changes, and the citation."""
    wanted = version(root)
    stated = {
        "CHANGELOG.md": re.findall(r"^## (\S+)", _text(root / "CHANGELOG.md"), re.MULTILINE)[:1],
        "CITATION.cff": re.findall(r"^version: (\S+)$", _text(root / "CITATION.cff"), re.MULTILINE),
    }
    return [f"{file} has {found or 'no version'}, not {wanted}" for file, found in stated.items() if found != [wanted]]


def changes_faults(root: Path) -> list[str]:
    """Return the bullets of the changes that are longer than a line."""
    lines = enumerate(_text(root / "CHANGELOG.md").splitlines(), start=1)
    return [
        f"CHANGELOG.md, line {number}: a bullet has more than one line, or one of over {LONGEST_BULLET} characters"
        for number, line in lines
        if len(line) > LONGEST_BULLET or line.startswith("  ")
    ]


def tree_faults(root: Path) -> list[str]:
    """Return the files that git does not have as they are here."""
    done = subprocess.run(["git", "status", "--porcelain"], cwd=root, capture_output=True, text=True, check=True)
    return [f"not committed: {line.strip()}" for line in done.stdout.splitlines()]


def test_faults(root: Path) -> list[str]:
    """Return what the tests of names, metadata, references, schemas and links say if one fails."""
    return _failure([sys.executable, "-m", "pytest", "-q", "-n", "0", *(f"tests/{name}" for name in TESTS)], root)


def build_faults(root: Path) -> list[str]:
    """Build wheel and source distribution into dist/, and return what twine has against them."""
    shutil.rmtree(root / "dist", ignore_errors=True)
    return _failure([sys.executable, "-m", "build", "--outdir", "dist"], root) or _failure(
        [sys.executable, "-m", "twine", "check", "--strict", *map(str, sorted((root / "dist").iterdir()))], root
    )


def install_faults(root: Path) -> list[str]:
    """Return the Pythons with which the wheel, installed with its dependencies, does not run the demo."""
    from support.pythons import other_pythons

    (wheel,) = (root / "dist").glob("*.whl")
    return [fault for python in (sys.executable, *other_pythons()) for fault in _install_faults(wheel, python)]


def _install_faults(wheel: Path, python: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        steps = (
            [python, "-m", "venv", "env"],
            ["env/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", str(wheel)],
            ["env/bin/r2med", "run"],
        )
        # With PYTHONPATH the code of a clone could run in the place of the wheel's.
        clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return next((faults for step in steps if (faults := _failure(step, here, clean))), [])


def left_to_people(root: Path) -> list[str]:
    """Return what only people can do: the list of CONTRIBUTING.md without what is done."""
    listed = _text(root / "CONTRIBUTING.md").partition("## What only a person can do")[2].partition("\n## ")[0]
    tables = tomllib.loads(_text(root / "pyproject.toml"))
    heading = re.findall(r"^## .*", _text(root / "CHANGELOG.md"), re.MULTILINE)[0]
    done = {
        "`repository`": bool(tables["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"]),
        "Set the date": "unreleased" not in heading,
    }
    tasks = re.findall(r"^\d+\. (.+)", listed, re.MULTILINE)
    return [
        task.replace("vVERSION", f"v{version(root)}")
        for task in tasks
        if not any(is_done and word in task for word, is_done in done.items())
    ]


CHECKS: Sequence[tuple[str, Callable[[Path], list[str]]]] = (
    ("all files are committed", tree_faults),
    ("source, changes and citation have one version", version_faults),
    ("each change is one line", changes_faults),
    ("names, metadata, references, schemas and links are tested", test_faults),
    ("wheel and source distribution are built, and an index would take them", build_faults),
    ("the wheel runs the demo with every Python that is installed", install_faults),
)


def main() -> int:
    """Run every check, print its outcome, and return 1 if one failed."""
    failed = False
    for name, check in CHECKS:
        faults = check(ROOT)
        failed |= bool(faults)
        print(f"{'FAILED' if faults else 'ok':8}{name}", flush=True)
        for fault in faults:
            print(f"        {fault}")
    for file in sorted((ROOT / "dist").glob("r2med-*")):
        print(f"sha256  {hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}")
    for task in left_to_people(ROOT):
        print(f"to do   {task}")
    return int(failed)


def _failure(command: Sequence[str], folder: Path, environment: Mapping[str, str] | None = None) -> list[str]:
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode == 0:
        return []
    return [f"{' '.join(command)} ended with {done.returncode}", *(done.stdout + done.stderr).splitlines()[-15:]]


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
