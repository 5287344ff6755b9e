"""Notice that the data of a running server were changed or removed, so that it does not answer with old texts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from r2med.data.dataset import Dataset
from r2med.foundation.store import Store
from r2med.server.refusals import HTTPError

FileState = tuple[int, int, int]
"""Size, time of the last change and inode of a file."""


@dataclass(frozen=True)
class DataWatch:
    """The files that a server read when it started, and their states."""

    dataset: str
    states: tuple[tuple[Path, FileState | None], ...] = ()

    @classmethod
    def of(cls, dataset: Dataset, store: Store) -> DataWatch:
        """Watch the copy of the documents in the store, and the folder if a user named one."""
        kept = store.root / "corpus" / dataset.corpus.fingerprint
        files = [*kept.glob("*.arrow"), *_files(dataset.own_folder)]
        return cls(dataset.name, tuple((path, _state(path)) for path in sorted(files)))

    @property
    def is_changed(self) -> bool:
        """True if a file was changed or removed after the server had started."""
        return any(_state(path) != state for path, state in self.states)

    def check(self) -> None:
        """Raise HTTPError if the data were changed."""
        if self.is_changed:
            raise HTTPError(503, f"the data of {self.dataset} were changed or removed: start the server again")


def _files(folder: Path | None) -> list[Path]:
    """Return the files of a dataset folder. Judgements may be in a folder inside it."""
    if folder is None:
        return []
    return [path for pattern in ("*", "qrels/*") for path in folder.glob(pattern) if path.is_file()]


def _state(path: Path) -> FileState | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ino
