"""The store: folders of files whose keys name all their inputs. A folder is complete or absent.

An artefact is built in a folder of `scratch`, flushed to the disk and renamed. So a folder with its final name is
complete, and is opened as it is. A killed process leaves only the first folder, and its lock is free. It is removed
when the next artefact is made.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import errno
import json
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy.typing as npt
from platformdirs import user_cache_path

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.shared_objects import SharedObjects
from r2med.foundation.store.dataset_labels import Labels, add_labels
from r2med.foundation.store.files import json_object, map_array, sync, write_atomically
from r2med.foundation.store.reads import current_reads
from r2med.foundation.store.sharing import exclusive, give_access, held, private_folder, tidy

log = logging.getLogger("r2med")

StorePolicy = Literal["keep", "fresh", "live"]
"""What a store keeps and uses again. keep: everything. fresh: it keeps everything, but uses only what this run made.
live: what belongs to a corpus is kept and used as ever; what belongs to a question ends with the process. If the folder
cannot be written, everything that a live store makes ends with the process."""

Value = TypeVar("Value")


SCRATCH = "scratch"
"""Folder of work in progress whose key is not known yet."""
META = "meta.json"
"""File with the metadata of an artefact."""


@dataclass(frozen=True)
class Artefact:
    """A finished folder of the store: read-only files and a little metadata."""

    path: Path
    meta: dict[str, Any]

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return one array, memory-mapped."""
        return map_array(self.path / f"{name}.npy")


class Store:
    """A folder of artefacts, root/kind/key/, and a policy of what is kept and used again."""

    def __init__(self, root: Path | str, policy: StorePolicy = "keep") -> None:
        self.root = Path(root)
        self.policy = policy
        self._made: set[str] | None = set() if policy == "fresh" else None  # keys that this run made; None if all count
        self.identity = object()
        """Tells stores apart that were opened apart. Views with other labels share it."""
        self._opened = SharedObjects()
        self._output = self.root if self.keeps_questions or self.is_writable else _temporary_folder()
        """The folder of new artefacts: the root, or a temporary folder if a live store cannot be written."""
        self._work = self._output / SCRATCH / "work"
        """The path beside which work in progress lies under hidden names."""
        self._ends = contextlib.ExitStack()  # folders that end with the process
        self.labels = Labels()
        """What the data belongs to that is made or used through this view."""

    def about(self, *datasets: str, model: str = "", alone: bool = False) -> Store:
        """Return a view of this store for data of some datasets and a model. Labels of this view stay, unless `alone`.

        All that is put into the store or read from it through the view gets these labels.
        """
        view = copy.copy(self)
        labels = Labels() if alone else self.labels
        names = {*labels.datasets, *datasets} - {""}
        view.labels = Labels(datasets=tuple(sorted(names)), model=model or labels.model)
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
        keeps = self.keeps_questions or folder == "api"
        root = self.root if keeps else self._opened.get("answers", self._until_the_end)
        return root / folder / f"{name}.sqlite"

    def _until_the_end(self) -> Path:
        """Return a new folder of answers that end with the process."""
        atexit.register(self._ends.close)
        return self._ends.enter_context(self.scratch())

    @property
    def is_writable(self) -> bool:
        """True if new artefacts can be kept in the folder of this store, or if the folder can be made."""
        return os.access(next(folder for folder in (self.root, *self.root.parents) if folder.exists()), os.W_OK)

    def _path(self, kind: str, name: str) -> Path:
        """Return the path of stored data. What this process made comes before what the root has."""
        path = self._output / kind / name
        return path if path.exists() else self.root / kind / name

    def opened(self, key: Hashable, open: Callable[[], Value]) -> Value:
        """Return what `open` returned for a key when it was first wanted, such as an index that a server searches."""
        return self._opened.get(key, open)

    def close(self) -> None:
        """Close what is open. A live store removes the answers of LLMs; the end of the process does it, too."""
        self._opened.clear()
        self._ends.close()

    def usable(self, key: str) -> bool:
        """Return True if stored data of a key may be used. A run that redoes everything uses only its own data."""
        return self._made is None or key in self._made

    def note_made(self, keys: Iterable[str]) -> None:
        """Note that this run made the data of these keys, in an artefact or elsewhere."""
        if self._made is not None:
            self._made.update(keys)

    def get(self, kind: str, key: str) -> Artefact | None:
        """Return the artefact, or None if it is missing."""
        path = self._path(kind, key)
        try:
            artefact = Artefact(path, json.loads((path / META).read_bytes())) if self.usable(key) else None
        except FileNotFoundError:
            artefact = None
        for reads in current_reads():
            reads.add_artefact(kind, key, artefact.meta if artefact is not None else None)
        if artefact is not None:
            with contextlib.suppress(OSError):  # a read-only store is fine
                add_labels(path, self.labels.datasets)
        return artefact

    def make(self, kind: str, key: str, build: Callable[[Path], dict[str, Any] | None]) -> Artefact:
        """Return the artefact, and build it with `build(folder)` if it is missing. One process builds, others wait.

        `build` writes files into the folder and returns metadata. The duration is added as `seconds`, unless the
        metadata has it already. Work of dead processes is removed, also if nothing is missing.
        """
        tidy(self._work)
        if (artefact := self.get(kind, key)) is not None:
            return artefact
        private_folder(self._output / "locks")
        with exclusive(self._output / "locks" / f"{kind}-{key}"), self.scratch() as work:
            if (artefact := self.get(kind, key)) is not None:  # another process was faster
                return artefact
            started = time.perf_counter()
            meta = build(work) or {}
            return self.add(kind, key, work, {"seconds": round(time.perf_counter() - started, 6), **meta})

    def add(self, kind: str, key: str, folder: Path, meta: dict[str, Any]) -> Artefact:
        """Flush a finished folder of `scratch` to the disk and move it to its final path. The first one stays."""
        meta = {**meta, **({"about": {"model": self.labels.model}} if self.labels.model else {})}
        (folder / META).write_text(json.dumps(meta, indent=1))
        add_labels(folder, self.labels.datasets)
        for path in (*folder.rglob("*"), folder):
            give_access(path)
            sync(path)
        path = self._output / kind / key
        private_folder(path.parent)
        while not _moved(folder, path):
            if (artefact := self.get(kind, key)) is not None:
                return artefact
            self.discard(kind, key)  # a fresh view did not make it, or it has no metadata
        sync(path.parent)
        self.note_made([key])
        for reads in current_reads():
            reads.add_artefact(kind, key, meta)
        return Artefact(path, meta)

    def discard(self, kind: str, key: str) -> None:
        """Remove an artefact, so that no process finds it half-deleted under its name."""
        path = self._path(kind, key)
        with contextlib.suppress(FileNotFoundError), self.scratch() as doomed:  # another process removed it
            path.rename(doomed / path.name)

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        """Return a block with a new empty folder for work in progress, which may be passed to `add`.

        Afterwards it is removed. At the beginning, those of dead processes are.
        """
        return held(self._work, private_folder)

    def recall(self, key: str) -> dict[str, Any] | None:
        """Return a small remembered fact, or None if it is missing or unreadable."""
        note = json_object(self._path("notes", f"{key}.json")) if self.usable(key) else {}
        if "value" not in note:
            return None
        value: dict[str, Any] = note["value"]
        if not {*self.labels.datasets} <= {*note["datasets"]}:
            with contextlib.suppress(OSError):  # a read-only store is fine
                self.remember(key, value)
        return value

    def remember(self, key: str, value: dict[str, Any]) -> None:
        """Save a small fact that can be computed again, such as the digest of a file."""
        before = json_object(self._path("notes", f"{key}.json"))
        note = {"value": value, "datasets": sorted({*before.get("datasets", ()), *self.labels.datasets})}
        if note != before:
            write_atomically(self._output / "notes" / f"{key}.json", json.dumps(note).encode(), private=True)
        self.note_made([key])

    def forget(self, key: str) -> None:
        """Remove a remembered fact that is no longer true."""
        self._path("notes", f"{key}.json").unlink(missing_ok=True)

    def notes_about(self, dataset: str) -> list[str]:
        """Return the keys of the remembered facts about a dataset."""
        notes = sorted((self.root / "notes").glob("*.json"))
        return [path.stem for path in notes if dataset in json_object(path).get("datasets", ())]


def default_store() -> Store:
    """Return the user's store: R2MED_HOME, or the cache folder of the platform."""
    home = os.environ.get("R2MED_HOME")
    try:
        if home:
            return Store(Path(home).expanduser())
        Path.home()  # raises RuntimeError if there is no home folder, which platformdirs does not
        return Store(user_cache_path("r2med", appauthor=False))
    except RuntimeError:
        unknown_user = f"R2MED_HOME={home} names the home folder of an unknown user"
        given = unknown_user if home else "there is no home folder for artefacts"
        raise UserError(f"{given}: set R2MED_HOME to a folder") from None


def _moved(folder: Path, path: Path) -> bool:
    """Rename a folder. Return False if there is a folder with files at the path already."""
    try:
        folder.rename(path)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _temporary_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="r2med-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
