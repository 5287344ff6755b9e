"""An environment with what `pip install -e .` installs and nothing else: no extras, and nothing of the tests.

`make test-all` names the one that `make run` made. Elsewhere the installed packages are linked into an empty one.
"""

from __future__ import annotations

import os
import subprocess
import venv
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

import r2med
from support.processes import PATIENCE, Ended, environment

VARIABLE = "R2MED_TEST_PLAIN_ENVIRONMENT"
"""The environment of `make run`; if it is not set, packages are linked."""


@dataclass(frozen=True)
class StartedProcess:
    """A command that was started and may run on."""

    process: subprocess.Popen[str]

    def has_ended(self) -> bool:
        """Return True if it has ended."""
        return self.process.poll() is not None

    def ended(self) -> Ended:
        """Wait for its end. It is killed if it hangs, or if the test is stopped."""
        try:
            out, err = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
        return Ended(self.process.returncode, out or "", err)


@dataclass(frozen=True)
class PlainEnvironment:
    """A virtual environment in which commands are typed, each in a process of its own."""

    folder: Path
    hub: str = ""
    """The hub's cache."""

    def run(self, words: Sequence[str], folder: Path, variables: Mapping[str, str]) -> Ended:
        """Run `r2med WORDS` to its end."""
        command, pipe = [str(self.folder / "bin/r2med"), *words], subprocess.PIPE
        settings = self._settings(variables)
        with subprocess.Popen(command, cwd=folder, env=settings, stdout=pipe, stderr=pipe, text=True) as process:
            return StartedProcess(process).ended()

    def start(self, words: Sequence[str], folder: Path, variables: Mapping[str, str], log: Path) -> StartedProcess:
        """Start `r2med WORDS`. The log gets the number of its process, and then what it prints."""
        command = ["sh", "-c", 'echo $$; exec "$@"', "sh", str(self.folder / "bin/r2med"), *words]
        settings = self._settings({**variables, "PYTHONUNBUFFERED": "1"})
        with log.open("wb") as out:
            process = subprocess.Popen(command, cwd=folder, env=settings, stdout=out, stderr=subprocess.PIPE, text=True)
        return StartedProcess(process)

    def _settings(self, variables: Mapping[str, str]) -> dict[str, str]:
        own = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")  # with the second, each command would compile r2med
        inherited = {name: value for name, value in environment().items() if name not in own}
        return {**inherited, "HF_HUB_CACHE": self.hub, "HF_HUB_OFFLINE": "1", **variables}

    def lacks(self, module: str) -> bool:
        """Return True if a module cannot be imported in the environment."""
        code = "import importlib.util, sys; sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
        return bool(subprocess.run([self.folder / "bin/python", "-c", code, module], cwd=self.folder).returncode)


def environment_of_make_run(hub: str, folder: Path) -> PlainEnvironment:
    """Return the environment of `make run` if the Makefile names it, otherwise one with links in the folder."""
    if VARIABLE not in os.environ:
        warnings.warn(f"{VARIABLE} is not set: packages are linked into {folder}", stacklevel=2)
        return linked_environment(hub, folder)
    made = PlainEnvironment(Path(os.environ[VARIABLE]), hub)
    if not made.lacks("torch"):
        warnings.warn(f"{made.folder} has more than `make run` installs: packages are linked instead", stacklevel=2)
        return linked_environment(hub, folder)
    return made


def linked_environment(hub: str, folder: Path) -> PlainEnvironment:
    """Return a new environment in an empty folder, to which the installed packages are linked."""
    venv.create(folder, with_pip=False, symlinks=True)
    [site] = folder.glob("lib/python*/site-packages")
    link_dependencies(site)
    _link(metadata.distribution("r2med"), site)
    (site / "r2med.pth").write_text(str(Path(r2med.__file__).parents[1]))
    script = folder / "bin/r2med"
    script.write_text(f"#!{folder}/bin/python\nimport sys\nfrom r2med.cli import main\nsys.exit(main())\n")
    script.chmod(0o755)
    return PlainEnvironment(folder, hub)


def link_dependencies(site: Path, *others: str) -> None:
    """Link everything that r2med requires without an extra, and other packages with what they require."""
    for distribution in _required("r2med", *others):
        if distribution.name != "r2med":
            _link(distribution, site)


def _link(distribution: metadata.Distribution, site: Path) -> None:
    """Link the packages and the metadata of a distribution."""
    assert distribution.files, f"{distribution.name} was installed without a list of its files"
    files = [file for file in distribution.files if ".." not in file.parts and file.suffix != ".pth"]
    packages = {file.parts[0] for file in files if file.parts[1:] == ("__init__.py",)}
    # A folder without an __init__.py may have files of other distributions, too.
    for part in dict.fromkeys(Path(file.parts[0]) if file.parts[0] in packages else Path(file) for file in files):
        (site / part).parent.mkdir(parents=True, exist_ok=True)
        (site / part).symlink_to(Path(str(distribution.locate_file(part))).absolute())


def _required(*names: str) -> list[metadata.Distribution]:
    """Return distributions and those that they need on this machine, each once."""
    found: dict[tuple[str, str], metadata.Distribution] = {}
    left = [(name, "") for name in names]
    while left:
        named, extra = left.pop()
        if (named, extra) in found:
            continue
        distribution = found[named, extra] = metadata.distribution(named)
        for line in distribution.requires or []:
            requirement = Requirement(line)
            markers: Mapping[str, str] = {"extra": extra}
            if requirement.marker is None or requirement.marker.evaluate(dict(markers)):
                needed = requirement.name.lower().replace("_", "-")
                left += [(needed, each) for each in ("", *requirement.extras)]
    return list({distribution.name: distribution for distribution in found.values()}.values())
