"""The worker of a Ray cluster: one process for each GPU, or for each node without; what it has loaded stays loaded."""

from __future__ import annotations

import errno
import os
import platform
import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from r2med.core.errors import UserError
from r2med.core.version import __version__, source_digest
from r2med.store import Artefact, Store, about, default_store
from r2med.store.artefacts import is_content

if TYPE_CHECKING:
    from r2med.engine.work import Work

Files = dict[str, npt.NDArray[np.uint8]]

FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Installation:
    """What must be the same on all machines for their numbers to be."""

    python: str
    r2med: str
    source: str
    """A digest of the code: two checkouts may bear one version."""

    @classmethod
    def here(cls) -> Installation:
        """Return that of this machine."""
        return cls(platform.python_version(), __version__, source_digest())

    def difference(self, other: Installation) -> str:
        """Return what differs, in words: the first thing that does, or nothing."""
        for name, mine in asdict(self).items():
            if mine != (theirs := getattr(other, name)):
                what = "other code of r2med" if name == "source" else name
                return f"{what} {theirs} instead of {mine}"
        return ""


@dataclass(frozen=True)
class SentArtefact:
    """An artefact on its way to another store; without files if that is the store in which it was made."""

    kind: str
    key: str
    meta: dict[str, Any]
    files: Files | None


@dataclass(frozen=True)
class DiskFull:
    """Says that a worker has no room left, so that others must do the item."""

    reason: str


class RayWorker:
    """Does items one after the other, with a store of its own: R2MED_HOME of the node."""

    def __init__(self, threads: int) -> None:
        os.environ["R2MED_THREADS"] = str(threads)  # its share of the node
        self._stores: dict[bool, Store] = {False: default_store(), True: default_store().fresh()}
        self._work: tuple[str, Any] = ("", None)

    def greet(self) -> tuple[str, Installation]:
        """Return the node's name, and what is installed there."""
        return socket.gethostname(), Installation.here()

    def answer(self, question: Callable[[], Any]) -> Any:
        """Return the answer to a question about this machine."""
        return _in_one_line(question)

    def do(self, work: list[Any], item: Any, note: str, fresh: bool, datasets: tuple[str, ...]) -> Any:
        """Return the result for an item.

        `note` stands for the work; it is in the store of the caller, and in this one if it is the same. What is kept
        here is labelled with the datasets.
        """
        with ExitStack() as labels:
            for dataset in datasets:
                labels.enter_context(about(dataset=dataset))
            return _in_one_line(lambda: self._do(work, item, note, fresh))

    def files(self, kind: str, key: str) -> Files:
        """Return the files of an artefact that was made here."""
        artefact = self._stores[False].get(kind, key)
        return _files(artefact) if artefact is not None else {}

    def _do(self, reference: list[Any], item: Any, note: str, fresh: bool) -> Any:
        if self._work[0] != note:
            import ray

            work: Work[Any, Any] = ray.get(reference[0])
            work.check()
            self._work = (note, work)
        try:
            result = self._work[1](item, self._stores[fresh])
        except OSError as error:
            if error.errno not in FULL:
                raise
            return DiskFull(str(error))
        if not isinstance(result, Artefact):
            return result
        shared = self._stores[False].recall(note) is not None
        return SentArtefact(result.path.parent.name, result.path.name, result.meta, None if shared else _files(result))


def _files(artefact: Artefact) -> Files:
    paths = [path for path in artefact.path.iterdir() if path.is_file() and is_content(path.name)]
    # Mapped, so that the object store's copy is the only one; a file without bytes cannot be.
    return {
        path.name: np.asarray(np.memmap(path, np.uint8, "r")) if path.stat().st_size else np.empty(0, np.uint8)
        for path in paths
    }


def _in_one_line(call: Callable[[], Any]) -> Any:
    """Return what a call returns; errors of the user's making are raised as one class, which travels."""
    try:
        return call()
    except UserError as error:
        raise UserError(str(error)) from None
