"""The Containerfile installs what docs/install.md says. No image is built: its steps run in a clean folder."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from support.plain_environment import link_dependencies
from support.processes import PATIENCE, environment

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "Containerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()


def stages() -> dict[str, tuple[str, list[tuple[str, str]]]]:
    """Return stage -> the image that it begins with, and its instructions."""
    lines = [line for line in TEXT.splitlines() if line and not line.startswith(("#", "ARG"))]
    found: dict[str, tuple[str, list[tuple[str, str]]]] = {}
    for line in lines:
        word, rest = line.split(maxsplit=1)
        if word == "FROM":
            image, _, name = rest.split()
            found[name] = image, []
        else:
            found[name][1].append((word, rest))
    return found


def installs(stage: str) -> list[str]:
    image, instructions = stages()[stage]
    before = installs(image) if image in stages() else []
    return [*before, *(rest for word, rest in instructions if word == "RUN")]


def test_every_step_is_a_command_of_the_page_about_installing() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    told = set(re.findall(r"pip install [^#`\n]*[^#`\n ]", page))
    assert set(installs("cpu")) <= told
    assert set(installs("cuda")) == {step for step in installs("cpu") if "whl/cpu" not in step}
    assert {line for line in told if line.startswith("pip install -e")} == set(installs("cuda"))


def test_the_steps_of_the_base_install_r2med_in_a_clean_folder(tmp_path: Path) -> None:
    clean, home = tmp_path / "r2med", tmp_path / "empty"
    names = [name.removeprefix("**/") for name in IGNORED]
    shutil.copytree(ROOT, clean, ignore=lambda folder, found: {*names, "tests"} & {*found})
    venv.create(home, with_pip=False, symlinks=True)
    [site] = home.glob("lib/python*/site-packages")
    link_dependencies(site, "hatchling")  # so that nothing is fetched
    pip = home / "bin" / "pip"
    flags = "--quiet --no-deps --no-build-isolation"
    pip.write_text(f'#!/bin/sh\nexec {sys.executable} -m pip --python {home}/bin/python "$@" {flags}\n')
    pip.chmod(0o755)
    settings = environment(PYTHONPATH="", PIP_NO_INDEX="1", PATH=f"{home}/bin:/usr/bin:/bin")

    def run(command: list[str], folder: Path) -> str:
        done = subprocess.run(command, cwd=folder, env=settings, capture_output=True, text=True, timeout=PATIENCE)
        assert done.returncode == 0, done.stderr
        return done.stdout

    instructions = dict(stages()["base"][1])
    assert instructions["COPY"] == ". ."
    for step in installs("base"):
        run(["sh", "-c", step], clean)
    [begin] = json.loads(instructions["ENTRYPOINT"])
    assert str(clean) in run([f"{home}/bin/python", "-c", "import r2med; print(r2med.__file__)"], tmp_path)
    assert "27.59" in run([f"{home}/bin/{begin}", "run", "bm25", "--data", "demo/Biology"], tmp_path)
