"""Who may read what is stored: its owner, or the group that shares the folder, whatever the umask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from r2med.foundation.store import Store
from r2med.foundation.store.access import private_folder


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
@pytest.mark.parametrize(
    ("parent_mode", "folder_mode", "file_mode"), [(0o2770, 0o770, 0o660), (0o755, 0o700, 0o600), (0o777, 0o700, 0o600)]
)
def test_a_folder_in_a_shared_one_is_shared_and_any_other_is_private(
    tmp_path: Path, umask: int, parent_mode: int, folder_mode: int, file_mode: int
) -> None:
    root = tmp_path / "store"
    root.mkdir()
    root.chmod(parent_mode)
    before = os.umask(umask)
    try:
        private_folder(root / "notes" / "inner")
        store = Store(root).about("ward")
        store.make("index", "0" * 32, lambda folder: (folder / "x").write_text("x") and None)
        store.remember("key", {"rows": 1})
    finally:
        os.umask(before)
    found = {each: each.stat().st_mode & 0o777 for each in root.rglob("*")}
    assert {mode for each, mode in found.items() if each.is_dir()} == {folder_mode}
    assert {mode for each, mode in found.items() if each.is_file()} == {file_mode}
