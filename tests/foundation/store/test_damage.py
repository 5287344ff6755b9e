"""Whatever file is cut, altered or lost, it is noticed and made again, and the numbers stay the same."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from r2med.evaluation.running.evaluation import evaluate
from r2med.foundation.store import Store
from support.by_day import some_by_day
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


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


@every_damage
@pytest.mark.parametrize("kind", some_by_day(["corpus", "bm25-postings", "bm25-impacts", "run"], 3))
def test_every_file_of_an_artefact_is_watched(
    kind: str,
    damage: Damage,
    sound: Workspace,
    mini: Path,
    undisturbed: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    names = [path.relative_to(sound.home) for path in files(sound.home / kind)]
    assert len(names) >= 3
    for name in names:
        before = (sound.home / name).read_bytes()
        damage(sound.home / name)
        for later in (sound.out, *([sound.home / "run"] if kind != "run" else [])):  # else they answer for the rest
            shutil.rmtree(later)
        caplog.clear()
        evaluate("bm25", mini, sound.out, store=Store(sound.home))
        assert sound.outcome() == undisturbed, name
        if name.name == "stamp.json":  # it holds nothing but the times of the others
            assert caplog.messages == []
        else:
            assert [message.split(" (")[0][-10:] for message in caplog.messages] == ["is damaged"], name
        if name.suffix in (".npy", ".arrow"):
            assert (sound.home / name).read_bytes() == before
    assert sound.leftovers() == []


@every_damage
def test_a_damaged_note_is_forgotten(damage: Damage, sound: Workspace, mini: Path, undisturbed: dict[str, Any]) -> None:
    (note,) = files(sound.home / "notes")
    before = note.read_bytes()
    damage(note)
    shutil.rmtree(sound.out)
    evaluate("bm25", mini, sound.out, store=Store(sound.home))
    assert sound.outcome() == undisturbed
    assert note.read_bytes() == before


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


def test_files_are_hashed_again_only_when_their_times_differ(
    sound: Workspace, mini: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[str] = []
    monkeypatch.setattr("r2med.foundation.store.manifest.sha256", lambda path: hashed.append(path.name))
    evaluate("bm25", mini, store=Store(sound.home))
    assert hashed == []


def test_a_copied_store_is_hashed_once_and_then_trusted(sound: Workspace, mini: Path, tmp_path: Path) -> None:
    shutil.copytree(sound.home, tmp_path / "copy")
    store = Store(tmp_path / "copy")
    (artefact,) = (tmp_path / "copy" / "run").iterdir()
    stamp = (artefact / "stamp.json").read_bytes()
    evaluate("bm25", mini, store=store)
    renewed = (artefact / "stamp.json").read_bytes()
    assert renewed != stamp
    evaluate("bm25", mini, store=store)
    assert (artefact / "stamp.json").read_bytes() == renewed


def test_a_stamp_of_another_shape_is_not_trusted(sound: Workspace, mini: Path, undisturbed: dict[str, Any]) -> None:
    for stamp in sound.home.rglob("stamp.json"):
        stamp.write_text("[1]")
    shutil.rmtree(sound.out)
    evaluate("bm25", mini, sound.out, store=Store(sound.home))
    assert sound.outcome() == undisturbed


def test_damage_is_told_in_one_line(sound: Workspace, mini: Path, caplog: pytest.LogCaptureFixture) -> None:
    (path,) = sound.home.glob("run/*/rows.npy")
    size = path.stat().st_size
    os.truncate(path, 7)
    evaluate("bm25", mini, store=Store(sound.home))
    key = path.parent.name[:8]
    told = f"run {key} is damaged (rows.npy has 7 bytes instead of {size}): making it again"
    assert caplog.record_tuples == [("r2med", logging.WARNING, told)]
