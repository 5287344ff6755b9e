"""Digests of whole files: every byte counts, and a large file is read once for each of its states."""

import hashlib
import os

import pytest

from r2med.foundation.store import Store
from r2med.foundation.store import file_digests as module
from r2med.foundation.store.file_digests import MIN_REMEMBERED_BYTES, file_digest, path_digest


@pytest.fixture
def read(monkeypatch):
    """Return the list of the files that were read. All files count as settled."""
    files = []
    real = module.sha256
    monkeypatch.setattr(module, "sha256", lambda path: files.append(path.name) or real(path))
    monkeypatch.setattr(module, "SETTLED_SECONDS", -1)
    module._read_once.cache_clear()
    yield files
    module._read_once.cache_clear()


@pytest.fixture
def large(tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(bytes(MIN_REMEMBERED_BYTES + 5))
    return file


def test_a_large_file_is_read_once_for_each_state(large, store, read):
    first = file_digest(large, store)
    assert first == hashlib.sha256(large.read_bytes()).hexdigest()
    module._read_once.cache_clear()  # as in another process
    assert file_digest(large, store) == first and len(read) == 1
    os.utime(large, ns=(1, 1))  # other times, the same bytes
    assert file_digest(large, store) == first and len(read) == 2


def test_a_byte_in_the_middle_changes_the_digest_though_size_and_time_are_put_back(large, store, read):
    first, times = file_digest(large, store), large.stat()
    with large.open("r+b") as file:
        file.seek(MIN_REMEMBERED_BYTES // 2)
        file.write(b"x")
    os.utime(large, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert file_digest(large, store) != first


def test_the_digest_of_a_file_that_changed_just_now_is_not_remembered(large, store, read, monkeypatch):
    monkeypatch.setattr(module, "SETTLED_SECONDS", 3600)
    assert file_digest(large, store) == file_digest(large, store)
    assert len(read) == 2


def test_a_fresh_store_and_a_read_only_one_do_not_need_the_note(large, store, read, monkeypatch):
    first = file_digest(large, store)
    module._read_once.cache_clear()
    assert file_digest(large, store.with_policy("fresh")) == first and len(read) == 2

    def refuse(*_):
        raise PermissionError(13, "read-only")

    monkeypatch.setattr(Store, "remember", refuse)
    os.utime(large, ns=(1, 1))
    assert file_digest(large, store) == first


def test_the_note_belongs_to_no_dataset(large, store, read):
    for _ in range(2):
        file_digest(large, store.about("mine"))
        assert not store.notes_about("mine")


def test_a_folder_is_its_names_and_contents_without_hidden_and_ignored_files(tmp_path, store):
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "a.bin").write_bytes(b"1")
    first = path_digest(folder, store, (".md",))
    for name in (".git", "README.md"):
        (folder / name).write_bytes(b"2")
    assert path_digest(folder, store, (".md",)) == first != path_digest(folder, store)
    (folder / "a.bin").rename(folder / "b.bin")
    assert path_digest(folder, store, (".md",)) != first
