"""The worker of a Ray cluster: one process per GPU, or per node without a GPU. Loaded models stay loaded."""

from __future__ import annotations

import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.version import __version__, source_digest
from r2med.foundation.store import Artefact, Store
from r2med.foundation.store.artefacts import META
from r2med.foundation.store.dataset_labels import LABEL_PREFIX

if TYPE_CHECKING:
    from r2med.foundation.engine.work import Function, Key


@dataclass(frozen=True)
class SentArtefact:
    """An artefact on its way to the store of the command."""

    kind: str
    key: str
    meta: dict[str, Any]
    files: dict[str, npt.NDArray[np.uint8]]

    @classmethod
    def of(cls, artefact: Artefact) -> SentArtefact:
        """Return an artefact with the content of its files."""
        own = [path for path in artefact.path.iterdir() if path.name != META and not path.name.startswith(LABEL_PREFIX)]
        files = {path.name: np.fromfile(path, np.uint8) for path in own}  # Ray does not copy arrays again
        return cls(artefact.path.parent.name, artefact.path.name, artefact.meta, files)

    def write(self, folder: Path) -> dict[str, Any]:
        """Write the files into a folder and return the metadata."""
        for name, content in self.files.items():
            content.tofile(folder / name)
        return dict(self.meta)


def versions() -> dict[str, str]:
    """Return the versions that must be equal on all machines so that their numbers are equal."""
    # The source, because two checkouts may have one version.
    return {"Python": platform.python_version(), "r2med": __version__, "source code of r2med": source_digest()}


class RayWorker:
    """A worker that does one item after the other. It keeps models, and no results: these belong to the command."""

    def __init__(self, threads: int) -> None:
        os.environ["R2MED_THREADS"] = str(threads)  # its share of the node
        self._function: tuple[str, Any] = ("", None)

    def greet(self) -> tuple[str, dict[str, str]]:
        """Return the name of the node and its versions."""
        return socket.gethostname(), versions()

    def do(self, function: list[Any], item: Any) -> tuple[Key | None, Any]:
        """Return the key of this machine and the result for an item. The list has the reference of the function."""
        with TemporaryDirectory(prefix="r2med-") as folder:
            key, result = self._opened(function[0])(item, Store(Path(folder)))
            return key, SentArtefact.of(result) if isinstance(result, Artefact) else result

    def _opened(self, reference: Any) -> Function[Any, Any]:
        """Return the function of a reference. It is opened once, with the model that it declares."""
        if self._function[0] != reference.hex():
            import ray

            self._function = (reference.hex(), ray.get(reference))
        function: Function[Any, Any] = self._function[1]
        return function
