"""A record or a run that is cut, altered or lost is noticed and made again, and the numbers stay the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from support.workspaces import Workspace


def cut_short(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def deleted(path: Path) -> None:
    path.unlink()


def altered(path: Path) -> None:
    """Change one bit in place; size, inode and name stay."""
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 1]))


def altered_behind_its_times(path: Path) -> None:
    before = path.stat()
    altered(path)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


Damage = Callable[[Path], None]
every_damage = pytest.mark.parametrize("damage", [cut_short, emptied, deleted, altered, altered_behind_its_times])


@pytest.fixture
def sound(workspace: Workspace, mini: Path) -> Workspace:
    evaluate("bm25", mini, workspace.out, store=Store(workspace.home))
    return workspace


@every_damage
@pytest.mark.parametrize("suffix", [".json", ".trec.gz"])
def test_a_damaged_record_or_run_is_made_again_and_told_once(
    suffix: str,
    damage: Damage,
    sound: Workspace,
    mini: Path,
    undisturbed: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    (path,) = sound.out.rglob(f"*{suffix}")
    damage(path)
    evaluate("bm25", mini, sound.out, store=Store(sound.home))
    assert sound.outcome() == undisturbed
    assert len(caplog.messages) == (0 if (damage, suffix) == (deleted, ".json") else 1)
