"""The worker of a Ray cluster: one process per GPU, or per node without a GPU. Loaded models stay loaded."""

from __future__ import annotations

import errno
import os
import platform
import socket
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.version import __version__, source_digest
from r2med.foundation.store import Artefact, Store, default_store
from r2med.foundation.store.artefacts import META
from r2med.foundation.store.dataset_labels import LABEL_PREFIX

if TYPE_CHECKING:
    from r2med.foundation.engine.work import Work

Files = dict[str, npt.NDArray[np.uint8]]

DISK_FULL_CODES = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Installation:
    """The versions that must be equal on all machines so that their numbers are equal."""

    python: str
    r2med: str
    source: str
    """A digest of the code, because two checkouts may have one version."""

    @classmethod
    def here(cls) -> Installation:
        """Return the installation of this machine."""
        return cls(platform.python_version(), __version__, source_digest())

    def difference(self, other: Installation) -> str:
        """Return the first difference in words; empty if there is none."""
        for name, mine in asdict(self).items():
            if mine != (theirs := getattr(other, name)):
                what = "other code of r2med" if name == "source" else name
                return f"{what} {theirs} instead of {mine}"
        return ""


@dataclass(frozen=True)
class SentArtefact:
    """An artefact that is sent to another store. It has no files if it was made in that store."""

    kind: str
    key: str
    meta: dict[str, Any]
    files: Files | None


@dataclass(frozen=True)
class DiskFull:
    """The answer of a worker whose disk is full, so that others must do the item."""

    reason: str


class RayWorker:
    """A worker that does one item after the other. It has its own store, R2MED_HOME of the node."""

    def __init__(self, threads: int) -> None:
        os.environ["R2MED_THREADS"] = str(threads)  # its share of the node
        self._store = default_store()
        self._fresh = ("", self._store)  # the latest view of a run that uses only what it made
        self._work: tuple[str, Any] = ("", None)

    def greet(self) -> tuple[str, Installation]:
        """Return the name of the node and its installation."""
        return socket.gethostname(), Installation.here()

    def answer(self, question: Callable[[], Any]) -> Any:
        """Return the answer to a question about this machine."""
        return _in_one_line(question)

    def do(self, work: list[Any], item: Any, note: str, view: str, datasets: tuple[str, ...]) -> Any:
        """Return the result for an item.

        `note` identifies the work. It is in the store of the caller, and in this one if it is the same store. `view`
        identifies a run that uses only what it made; it is empty for others. Data stored here is labelled with the
        datasets.
        """
        return _in_one_line(lambda: self._do(work, item, note, self._viewed(view).about(*datasets)))

    def files(self, kind: str, key: str) -> Files:
        """Return the files of an artefact that was made here."""
        artefact = self._store.get(kind, key)
        return _files(artefact) if artefact is not None else {}

    def _viewed(self, view: str) -> Store:
        if view and self._fresh[0] != view:
            self._fresh = view, self._store.with_policy("fresh")
        return self._fresh[1] if view else self._store

    def _do(self, reference: list[Any], item: Any, note: str, store: Store) -> Any:
        if self._work[0] != note:
            import ray

            work: Work[Any, Any] = ray.get(reference[0])
            work.check()
            self._work = (note, work)
        try:
            result = self._work[1](item, store)
        except OSError as error:
            if error.errno not in DISK_FULL_CODES:
                raise
            return DiskFull(str(error))
        if not isinstance(result, Artefact):
            return result
        shared = self._store.recall(note) is not None
        return SentArtefact(result.path.parent.name, result.path.name, result.meta, None if shared else _files(result))


def _files(artefact: Artefact) -> Files:
    paths = [path for path in artefact.path.iterdir() if path.name != META and not path.name.startswith(LABEL_PREFIX)]
    # Mapped, so that the object store has the only copy. An empty file cannot be mapped.
    return {
        path.name: np.asarray(np.memmap(path, np.uint8, "r")) if path.stat().st_size else np.empty(0, np.uint8)
        for path in paths
    }


def _in_one_line(call: Callable[[], Any]) -> Any:
    """Return the result of a call. User errors are raised as one class that can be sent between machines."""
    try:
        return call()
    except UserError as error:
        raise UserError(str(error)) from None
