"""The release checklist finds what it is for; the real one is run by `make release-check`."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def checklist() -> Any:
    spec = importlib.util.spec_from_file_location("release_check", ROOT / ".ci/release_check.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a copy of the files that state the version."""
    pages = ("CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md")
    for name in (*pages, "pyproject.toml", "src/r2med/foundation/core/version.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_source_changes_and_citation_have_one_version(checklist: Any, clone: Path) -> None:
    assert checklist.version_faults(ROOT) == []
    replace(clone / "src/r2med/foundation/core/version.py", checklist.version(ROOT), "9.9.9")
    assert [fault.partition(" ")[0] for fault in checklist.version_faults(clone)] == ["CHANGELOG.md", "CITATION.cff"]


def test_each_change_is_one_line(checklist: Any, clone: Path) -> None:
    assert checklist.changes_faults(ROOT) == []
    replace(clone / "CHANGELOG.md", "\n- ", "\n- One line\n  and another.\n- ")
    assert len(checklist.changes_faults(clone)) == 1


def test_a_file_that_is_not_committed_is_named(checklist: Any, clone: Path) -> None:
    subprocess.run(["git", "init", "--quiet"], cwd=clone, check=True)
    assert "not committed: ?? CITATION.cff" in checklist.tree_faults(clone)


def test_what_only_people_can_do_is_listed_and_what_is_done_is_left_out(checklist: Any, clone: Path) -> None:
    listed = checklist.left_to_people(clone)
    assert listed[0].startswith("Set `repository`")
    assert len(listed) == 9
    assert any(f"git tag v{checklist.version(ROOT)}" in task for task in listed)
    replace(clone / "pyproject.toml", 'repository = ""', 'repository = "https://host.example/r2med"')
    replace(clone / "CHANGELOG.md", "(unreleased)", "(2026-12-01)")
    assert checklist.left_to_people(clone) == listed[2:]


def test_a_command_that_fails_is_a_fault_with_its_last_lines(checklist: Any, tmp_path: Path) -> None:
    assert checklist._failure(["python", "-c", "pass"], tmp_path) == []
    assert "why" in checklist._failure(["python", "-c", "import sys; sys.exit('why')"], tmp_path)[-1]
