"""A folder of texts in memory, read like a folder on disk."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from typing import IO, Any


class _InMemory:
    """What files and folders share. Both have the form of `Traversable`."""

    def iterdir(self) -> Iterator[Traversable]:
        """Yield nothing, as a file does."""
        yield from ()

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        """Raise IsADirectoryError, as a folder does."""
        raise IsADirectoryError(str(self))

    def joinpath(self, *names: Any) -> Traversable:
        """Return a file of the folder. Raises FileNotFoundError if there is none."""
        found = {str(file.name): file for file in self.iterdir()}
        if len(names) != 1 or str(names[0]) not in found:
            raise FileNotFoundError("/".join([str(self), *map(str, names)]))
        return found[str(names[0])]

    def __truediv__(self, name: Any) -> Traversable:
        return self.joinpath(name)

    def read_bytes(self) -> bytes:
        """Return the content of a file."""
        return bytes(self.open("rb").read())

    def read_text(self, encoding: str | None = None) -> str:
        """Return the text of a file."""
        return self.read_bytes().decode(encoding or "utf-8")


@dataclass(frozen=True)
class TextFile(_InMemory):
    """A text with a name."""

    folder: str
    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"

    def is_dir(self) -> bool:
        """Return False."""
        return False

    def is_file(self) -> bool:
        """Return True."""
        return True

    def open(self, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        """Return the text as a file that is open for reading."""
        return io.BytesIO(self.text.encode()) if "b" in mode else io.StringIO(self.text)


@dataclass(frozen=True)
class TextFolder(_InMemory):
    """Texts by the names of their files."""

    name: str
    texts: Mapping[str, str]

    def __str__(self) -> str:
        return self.name

    def iterdir(self) -> Iterator[Traversable]:
        """Yield the files."""
        yield from (TextFile(self.name, name, text) for name, text in self.texts.items())

    def is_dir(self) -> bool:
        """Return True."""
        return True

    def is_file(self) -> bool:
        """Return False."""
        return False
