"""The store: folders of files whose keys name all their inputs. A folder is complete or absent, and damage is detected.

An artefact is built in a temporary folder beside its final path, sealed with a manifest (size and SHA-256 of
every file), flushed and renamed. A folder with its final name is therefore complete. A killed process leaves only a
temporary folder, which is removed when the same key is requested again.

Hashing tens of gigabytes at every start would be slow, so files are hashed again only when their size, times
or inode differ from those at the last check, as git does for a work tree. Rot that leaves a file's times
untouched is detected by `Artefact.verify`.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import json
import logging
import os
import shutil
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy.typing as npt

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import emit
from r2med.foundation.core.shared_objects import SharedObjects
from r2med.foundation.store.dataset_labels import LABEL_PREFIX, Labels, add_labels
from r2med.foundation.store.files import (
    SHARED,
    digest,
    exclusive,
    map_array,
    mode_inside,
    private_folder,
    sync,
    write_atomically,
)
from r2med.foundation.store.library_versions import listed, note_versions, noted_versions
from r2med.foundation.store.manifest import MANIFEST, STAMP, DamagedError, check_files, read_manifest, seal, write_stamp
from r2med.foundation.store.owners import abandoned, process_name, stale, stale_work
from r2med.foundation.store.reads import ArtefactRead

log = logging.getLogger("r2med")

StorePolicy = Literal["keep", "fresh", "live"]
"""What a store keeps and uses again. keep: everything. fresh: it keeps everything, but uses only what this run made.
live: what belongs to a corpus is kept and used as ever; what belongs to a question ends with the process. If the folder
cannot be written, everything that a live store makes ends with the process."""

Value = TypeVar("Value")


def is_content(name: str) -> bool:
    """Return True if a file is part of the content of an artefact, and not a manifest, stamp or label."""
    return name not in (MANIFEST, STAMP) and not name.startswith(LABEL_PREFIX)


@dataclass(frozen=True)
class Artefact:
    """A finished folder of the store: read-only files and a little metadata."""

    path: Path
    meta: dict[str, Any]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return one array, memory-mapped."""
        return map_array(self.path / f"{name}.npy")

    def file(self, name: str) -> Path:
        """Return the path of one file."""
        return self.path / name

    def verify(self) -> None:
        """Hash every file, even if its times are unchanged. Raises DamagedError if a file has changed."""
        check_files(self.path, read_manifest(self.path)["files"], trusted={})


class Store:
    """A folder of artefacts, root/kind/key/, and a policy of what is kept and used again."""

    def __init__(self, root: Path | str, policy: StorePolicy = "keep") -> None:
        self.root = Path(root)
        self.policy = policy
        self._made: set[str] | None = set() if policy == "fresh" else None  # keys that this run made; None if all count
        self.view = uuid.uuid4().hex if policy == "fresh" else ""
        """Identifies the view of a run that uses only what it made, also on other machines. Empty for other views."""
        self._swept: set[Path] = set()
        self._opened = SharedObjects()
        self._folders = SharedObjects()
        self.labels = Labels()
        """What the data belongs to that is made or used through this view."""

    def about(self, *datasets: str, model: str = "", alone: bool = False) -> Store:
        """Return a view of this store for data of some datasets and a model. Labels of this view stay, unless `alone`.

        All that is put into the store or read from it through the view gets these labels.
        """
        view = copy.copy(self)
        view.labels = (Labels() if alone else self.labels).with_more(datasets, model)
        return view

    def with_policy(self, policy: StorePolicy) -> Store:
        """Return this store under another policy. Under its own policy it is the same object, with what it made."""
        if policy == self.policy:
            return self
        other = Store(self.root, policy)
        other.labels = self.labels
        return other

    @property
    def keeps_questions(self) -> bool:
        """True if rankings, scores and notices of a question are kept; False where each question is its asker's own."""
        return self.policy != "live"

    def memo_file(self, folder: str, name: str) -> Path:
        """Return the file of a memo. A live store keeps answers about questions only until the process ends.

        Vectors of embedding APIs are kept, because they contain no text.
        """
        root = self.root if self.keeps_questions or folder == "api" else self._answers
        return root / folder / f"{name}.sqlite"

    @property
    def _answers(self) -> Path:
        """The folder of answers that end with the process."""
        return self._folders.get("answers", self.scratch).value

    @property
    def is_writable(self) -> bool:
        """True if new artefacts can be kept in the folder of this store, or if the folder can be made."""
        return os.access(next(folder for folder in (self.root, *self.root.parents) if folder.exists()), os.W_OK)

    @property
    def _output(self) -> Path:
        """The folder of new artefacts: the root, or a temporary folder if a live store cannot be written."""
        return self.root if self.keeps_questions else self._folders.get("output", self._live_output).value

    def _live_output(self) -> Path:
        if self.is_writable:
            return self.root
        folder = Path(tempfile.mkdtemp(prefix="r2med-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        return folder

    def _path(self, kind: str, name: str) -> Path:
        """Return the path of stored data. What this process made comes before what the root has."""
        path = self._output / kind / name
        return path if path.exists() else self.root / kind / name

    def opened(self, key: str, open: Callable[[], Value]) -> Value:
        """Return what `open` returned for a key when it was first wanted, such as the searcher of an index."""
        return self._opened.get(key, open).value

    def close(self) -> None:
        """Close what is open. A live store removes the answers of LLMs; the end of the process does it, too."""
        self._opened.clear()
        if not self.keeps_questions:
            shutil.rmtree(self._answers, ignore_errors=True)

    def usable(self, key: str) -> bool:
        """Return True if stored data of a key may be used. A run that redoes everything uses only its own data."""
        return self._made is None or key in self._made

    def note_made(self, keys: Iterable[str]) -> None:
        """Note that this run made the data of these keys, in an artefact or elsewhere."""
        if self._made is not None:
            self._made.update(keys)

    def get(self, kind: str, key: str) -> Artefact | None:
        """Return the artefact, or None if it is missing. A damaged artefact is removed and treated as missing."""
        artefact = self._found(kind, key)
        emit(ArtefactRead(kind, key, artefact is not None))
        return artefact

    def _found(self, kind: str, key: str) -> Artefact | None:
        with contextlib.suppress(DamagedError):
            return self._look(kind, key)
        with self._locked(kind, key) as locked:  # another process may be making it again, and must not lose it
            return self._get_locked(kind, key, locked)

    def make(self, kind: str, key: str, build: Callable[[Path], dict[str, Any] | None]) -> Artefact:
        """Return the artefact, and build it with `build(folder)` if it is missing. One process builds, others wait.

        `build` writes files into the folder and returns metadata. The duration is added as `seconds`, unless the
        metadata has it already.
        """
        if (artefact := self.get(kind, key)) is not None:
            return artefact
        with self._locked(kind, key) as locked:
            if (artefact := self._get_locked(kind, key, locked)) is not None:  # another process was faster
                return artefact
            path = self._cleared(kind, key, locked)
            work = path.with_name(f"{key}.{process_name()}")
            work.mkdir(mode=mode_inside(work.parent))
            try:
                started = time.perf_counter()
                with noted_versions() as versions:
                    meta = {**(build(work) or {}), **self.labels.as_meta()}
                    note_versions(meta)
                meta |= {"versions": listed(versions)} if versions else {}
                meta.setdefault("seconds", round(time.perf_counter() - started, 6))
                return self._put(work, path, meta, locked)
            except BaseException:
                _remove(work)
                raise

    def add(self, kind: str, key: str, folder: Path, meta: dict[str, Any]) -> Artefact:
        """Add a finished folder on the store's file system whose key was known only after it was written."""
        with self._locked(kind, key) as locked:
            try:
                if (artefact := self._get_locked(kind, key, locked)) is not None:
                    _remove(folder)
                    return artefact
                note_versions(meta)
                return self._put(folder, self._cleared(kind, key, locked), {**meta, **self.labels.as_meta()}, locked)
            except BaseException:
                _remove(folder)
                raise

    def discard(self, kind: str, key: str) -> None:
        """Remove an artefact. Raises UserError if others may be using it and the file system has no locks."""
        path = self._path(kind, key)
        with self._locked(kind, key) as locked:
            if not locked:
                raise UserError(_not_alone(path, "is damaged"))
            _remove(path)

    def scratch(self) -> Path:
        """Return a new empty folder for work in progress. Its owner removes it or passes it to `add`."""
        base = self._output / "scratch"
        for dead in (*stale(base), *abandoned(base)):
            shutil.rmtree(dead, ignore_errors=True)
        folder = base / process_name()
        private_folder(folder)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)  # a full disk or Ctrl-C leaves nothing behind
        return folder

    def recall(self, key: str) -> dict[str, Any] | None:
        """Return a small remembered fact, or None if it is missing or unreadable."""
        note = self._note(key) if self.usable(key) else None
        if note is None:
            return None
        if not {*self.labels.datasets} <= {*note["datasets"]}:
            with contextlib.suppress(OSError):  # a read-only store is fine
                self._write_note(key, note["value"], note["datasets"])
        value: dict[str, Any] = note["value"]
        return value

    def remember(self, key: str, value: dict[str, Any]) -> None:
        """Save a small fact that can be computed again, such as the digest of a file."""
        note = self._note(key)
        if note is None or note["value"] != value or not {*self.labels.datasets} <= {*note["datasets"]}:
            self._write_note(key, value, note["datasets"] if note else ())
        self.note_made([key])

    def forget(self, key: str) -> None:
        """Remove a remembered fact that is no longer true."""
        self._path("notes", f"{key}.json").unlink(missing_ok=True)

    def notes_about(self, dataset: str) -> list[str]:
        """Return the keys of the remembered facts about a dataset."""
        keys = sorted(path.stem for path in (self.root / "notes").glob("*.json"))
        return [key for key in keys if (note := self._note(key)) is not None and dataset in note["datasets"]]

    def _note(self, key: str) -> dict[str, Any] | None:
        """Return a fact and the names of the datasets that it is about, or None."""
        try:
            note: dict[str, Any] = json.loads(self._path("notes", f"{key}.json").read_bytes())
            sound = note["check"] == digest(note["value"])
            return {"value": note["value"], "datasets": list(note.get("datasets", ()))} if sound else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def _write_note(self, key: str, value: dict[str, Any], datasets: Iterable[str]) -> None:
        names = sorted({*datasets, *self.labels.datasets})
        note = {"value": value, "check": digest(value), **({"datasets": names} if names else {})}
        private_folder(self._output / "notes")
        write_atomically(self._output / "notes" / f"{key}.json", json.dumps(note).encode(), private=True)

    def _look(self, kind: str, key: str) -> Artefact | None:
        path = self._path(kind, key)
        self._sweep(path.parent)
        if not (self.usable(key) and path.is_dir()):
            return None
        artefact = _open(path)
        note_versions(artefact.meta)
        with contextlib.suppress(OSError):  # a read-only store is fine
            add_labels(path, artefact.meta, self.labels.datasets)
        return artefact

    def _sweep(self, folder: Path) -> None:
        """Remove the leftovers of killed processes, once for each kind. A corpus may have thousands of shards."""
        if folder not in self._swept:
            self._swept.add(folder)
            with contextlib.suppress(OSError):  # earlier versions let other users read it
                mode = folder.stat().st_mode & 0o777
                if mode & (0o007 if mode & SHARED else 0o077):
                    folder.chmod(mode & 0o770 if mode & SHARED else 0o700)
            for dead in (*stale_work(folder), *(path for path in abandoned(folder) if "." in path.name)):
                shutil.rmtree(dead, ignore_errors=True)

    def _get_locked(self, kind: str, key: str, locked: bool) -> Artefact | None:
        """Return the artefact as `get` does, for the holder of the lock."""
        try:
            return self._look(kind, key)
        except DamagedError as damage:
            path = self._path(kind, key)
            if not locked:
                raise UserError(_not_alone(path, f"is damaged ({damage})")) from None
            log.warning("%s %s is damaged (%s): making it again", kind, key[:8], damage)
            _remove(path)
            return None

    def _cleared(self, kind: str, key: str, locked: bool) -> Path:
        """Return the final path after removing work beside it. While we hold the lock, its owner must be dead."""
        path = self._output / kind / key
        private_folder(path.parent)
        for work in path.parent.glob(f"{key}.*") if locked else stale_work(path.parent, key):
            shutil.rmtree(work, ignore_errors=True)
        return path

    def _put(self, folder: Path, path: Path, meta: dict[str, Any], locked: bool) -> Artefact:
        """Move a finished folder to its final path. An existing equal artefact is kept."""
        seal(folder, meta)
        add_labels(folder, meta, self.labels.datasets)
        try:
            if not path.exists():
                folder.replace(path)
        except OSError:
            if not path.exists():
                raise
        if folder.exists() and self._made is None:  # there are no locks, and another process was faster
            _remove(folder)
            return _open(path)
        if folder.exists() and _is_sound_copy(path, folder):
            _remove(folder)  # another process may be about to open the existing folder
        elif folder.exists():
            if not locked:
                raise UserError(_not_alone(path, "differs from the earlier one"))
            _remove(path)
            folder.replace(path)
        sync(path.parent)
        self.note_made([path.name])
        return Artefact(path, meta)

    def _locked(self, kind: str, key: str) -> contextlib.AbstractContextManager[bool]:
        private_folder(self._output / "locks")
        return exclusive(self._output / "locks" / f"{kind}-{key}")


def _not_alone(path: Path, fault: str) -> str:
    return (
        f"{path} {fault}, but its file system has no locks, so other runs may be using it: "
        "end them, remove that folder and run again, or set R2MED_HOME to a folder on a local disk"
    )


def default_store() -> Store:
    """Return the user's store: R2MED_HOME, or the cache folder of the platform."""
    try:
        if home := os.environ.get("R2MED_HOME"):
            return Store(Path(home).expanduser())
        return Store(_cache_folder() / "r2med")
    except RuntimeError:
        unknown_user = f"R2MED_HOME={home} names the home folder of an unknown user"
        given = unknown_user if home else "there is no home folder for artefacts"
        raise UserError(f"{given}: set R2MED_HOME to a folder") from None


def _cache_folder() -> Path:
    if folder := os.environ.get("XDG_CACHE_HOME"):
        return Path(folder)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path.home() / ".cache"


def _open(path: Path) -> Artefact:
    manifest = read_manifest(path)
    try:
        trusted = json.loads((path / STAMP).read_bytes())
    except (OSError, ValueError):
        trusted = None
    seen = check_files(path, manifest["files"], trusted if isinstance(trusted, dict) else {})
    if seen != trusted:
        with contextlib.suppress(OSError):  # a read-only store is allowed: files are only hashed again next time
            write_stamp(path, seen)
    return Artefact(path, manifest["meta"])


def _is_sound_copy(path: Path, folder: Path) -> bool:
    try:
        files = read_manifest(path)["files"]
        check_files(path, files, trusted={})
        return bool(files == read_manifest(folder)["files"])
    except DamagedError:
        return False


def _remove(path: Path) -> None:
    """Delete a folder so that no process finds it half-deleted under its name."""
    doomed = path.with_name(f"{path.name}.{process_name()}")
    with contextlib.suppress(OSError):
        path.replace(doomed)
        try:
            shutil.rmtree(doomed, ignore_errors=True)
        except BaseException:  # Ctrl-C must not leave half a folder
            shutil.rmtree(doomed, ignore_errors=True)
            raise
