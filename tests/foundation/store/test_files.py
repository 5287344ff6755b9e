"""Files that are whole or not there, arrays that are mapped, never unpickled."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from r2med.data.overlays import Overlay
from r2med.data.problems import Problems
from r2med.data.source_rows import read_lines
from r2med.evaluation.records.lock_file import Lock
from r2med.foundation.core.errors import UserError
from r2med.foundation.store.files import (
    let_go,
    map_array,
    sha256,
    text_digest,
    write_array,
    write_atomically,
)
from r2med.foundation.store.sharing import held, tidy


def test_a_file_is_written_with_its_parents_and_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "file.json"
    write_atomically(path, b"one")
    write_atomically(path, b"two")
    assert path.read_bytes() == b"two"
    assert list(path.parent.iterdir()) == [path]


def test_a_written_file_may_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


@pytest.mark.parametrize("failing", ["os.fsync", "pathlib.Path.replace"])
def test_a_write_that_fails_leaves_what_was_there(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail(*arguments: object) -> None:
        raise OSError("no")

    monkeypatch.setattr(failing, fail)
    with pytest.raises(OSError, match="no"):
        write_atomically(path, b"after")
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_content_is_flushed_before_it_gets_its_name_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def flushing(handle: int) -> None:
        events.append("flush folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "flush file")
        fsync(handle)

    def renaming(path: Path, target: Path) -> Path:
        events.append("rename")
        return replace(path, target)

    monkeypatch.setattr(os, "fsync", flushing)
    monkeypatch.setattr(Path, "replace", renaming)
    write_atomically(tmp_path / "file", b"content")
    assert events == ["flush file", "rename", "flush folder"]


def test_temporary_files_of_the_dead_go_and_all_others_stay(tmp_path: Path) -> None:
    dead = tmp_path / f".record.json.{1:032x}.tmp"
    others = [tmp_path / f".another.json.{1:032x}.tmp", tmp_path / ".record.json.swp", tmp_path / "record.json"]
    with held(tmp_path / "record.json", Path.touch) as living:
        for path in (dead, *others):
            path.touch()
        tidy(tmp_path / "record.json")
        assert sorted(tmp_path.iterdir()) == sorted([living, *others])


def test_tidying_a_folder_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    tidy(tmp_path / "nowhere" / "record.json")
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_the_longest_name_is_written_and_tidied(tmp_path: Path) -> None:
    path = tmp_path / ("é" * 120)
    write_atomically(path, b"content")
    assert path.read_bytes() == b"content"
    assert list(tmp_path.iterdir()) == [path]


@given(st.binary(max_size=200))
def test_a_checksum_is_that_of_the_bytes(content: bytes) -> None:
    path = Path(os.environ["R2MED_HOME"])
    path.write_bytes(content)
    assert sha256(path) == hashlib.sha256(content).hexdigest()


@given(
    hnp.arrays(st.sampled_from([np.int32, np.int64, np.float32, np.uint8]), hnp.array_shapes(min_dims=1, min_side=0))
)
def test_an_array_reads_back_as_it_was_written(array: npt.NDArray[np.generic]) -> None:
    path = Path(os.environ["R2MED_HOME"])
    write_array(path, array)
    read = map_array(path)
    assert read.dtype == array.dtype
    np.testing.assert_array_equal(read, array)
    np.testing.assert_array_equal(np.load(path), array)


def test_an_array_is_mapped_and_read_only(tmp_path: Path) -> None:
    write_array(tmp_path / "a.npy", np.arange(5))
    array = map_array(tmp_path / "a.npy")
    assert isinstance(array, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1


@pytest.mark.skipif(not Path("/proc/self/smaps").is_file(), reason="only Linux says which pages are in memory")
@pytest.mark.parametrize(
    "part", [lambda array: array, lambda array: array[7:], np.asarray], ids=["all", "slice", "view"]
)
def test_pages_of_a_mapped_array_are_released(part: Callable[[Any], Any], tmp_path: Path) -> None:
    """The kernel's own count of the file's pages, so that a NumPy that maps in another way is noticed."""
    path = tmp_path / "a.npy"
    write_array(path, np.ones(1 << 20))
    array = part(map_array(path))

    def resident() -> int:
        lines = iter(Path("/proc/self/smaps").read_text().splitlines())
        assert any(line.endswith(str(path)) for line in lines)  # the lines about the file follow
        return int(next(line for line in lines if line.startswith("Rss:")).split()[1])

    assert array.sum() >= (1 << 20) - 7 and resident() > 8000
    let_go(array)
    assert resident() == 0
    assert array[-1] == 1 and resident() > 0


@pytest.mark.parametrize("value", [np.array([{"a": 1}], dtype=object), np.array([], dtype=object)])
def test_a_pickled_array_is_refused(value: npt.NDArray[np.object_], tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", value, allow_pickle=True)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        map_array(tmp_path / "a.npy")


def test_a_text_with_a_lone_surrogate_has_a_digest_of_its_own() -> None:
    assert text_digest("gout") == hashlib.sha256(b"gout").digest()
    assert len({text_digest(text) for text in ("\ud800", "\ud801", "?", "")}) == 4


def test_a_file_that_is_a_pickle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.npy").write_bytes(b"\x80\x04K\x01.")
    with pytest.raises(ValueError, match="pickled"):
        map_array(tmp_path / "a.npy")


@pytest.mark.parametrize(
    "read",
    [Overlay.read, Lock.read, lambda path: list(read_lines(path, Problems()))],
)
def test_a_device_is_refused_before_it_is_read(read: Callable[[Path], object]) -> None:
    """/dev/zero would fill the memory. /dev/null is a device that ends, so that this test can fail."""
    with pytest.raises(UserError, match="/dev/null is a device, not a file"):
        read(Path(os.devnull))
