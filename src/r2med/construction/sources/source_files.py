"""Read the files of a source: one file, a folder, or an archive, which is not unpacked.

A part that cannot be read is reported with its position, and the rest is still read.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any, ClassVar, TypeVar

from pydantic import Field

from r2med.construction.items import NOT_READ, Rejected, StreamItem
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.core.errors import UserError
from r2med.foundation.runtime.runtime import Runtime
from r2med.foundation.runtime.stages import argument
from r2med.foundation.store import Store
from r2med.foundation.store.file_digests import file_digest, files_digest
from r2med.foundation.text.unicode import to_unicode

MAX_BYTES = 64 << 20
"""Maximum size, unpacked, of a page, a line or an element that is read at once. Books are smaller, bombs are larger."""

UNREADABLE = (OSError, EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError)
"""Exceptions that truncated or damaged files raise."""

_PACKED: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_TARS = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")


SourcePart = TypeVar("SourcePart")


class SourceError(Exception):
    """A part of a source cannot be read; the text says where and why."""


@dataclass(frozen=True)
class SourceFile:
    """A file of a source. It is open until the next file is requested."""

    name: str
    """Path inside the source, with slashes."""
    where: str
    """Path for messages and provenance. It starts with the name of the source, because it is published."""
    stream: IO[bytes]

    def read(self) -> bytes:
        """Return all bytes of the file. Raises SourceError if the file is larger than MAX_BYTES."""
        body = self.stream.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise SourceError(f"larger than {MAX_BYTES >> 20} MB")
        return body

    def rows(self) -> Iterator[tuple[int, dict[str, Any] | SourceError]]:
        """Yield each line that is not blank, as its number and its JSON object or an error."""
        number = 0
        while line := self.stream.readline(MAX_BYTES + 1):
            number += 1
            if len(line) > MAX_BYTES:
                while line and not line.endswith(b"\n"):
                    line = self.stream.readline(MAX_BYTES)
                yield number, SourceError(f"longer than {MAX_BYTES >> 20} MB")
            elif line.strip():
                yield number, _row(line.removeprefix(b"\xef\xbb\xbf"))


def _row(line: bytes) -> dict[str, Any] | SourceError:
    try:
        row = json.loads(to_unicode(line.decode("utf-8")))
    except UnicodeDecodeError as error:
        return SourceError(f"not UTF-8 at byte {error.start + 1} of the line")
    except (ValueError, RecursionError) as error:
        at = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        cut = "" if line.endswith(b"\n") else "; the file ends in this line"
        return SourceError(f"not valid JSON{at}{cut}")
    return row if isinstance(row, dict) else SourceError("not a JSON object")


class SourceStep(Step, kind="build"):
    """A step that reads a source from disk, one file at a time."""

    adds = True
    expects: ClassVar[str] = "other files"
    endings: ClassVar[tuple[str, ...]]
    """Endings of file names that are read inside folders and archives."""

    path: str = argument("a file, a folder, or a zip or tar of files, beside the plan")
    licence: str = Field("", description="Licence of the source, for the datasheet.")
    prefix: str = Field("", description="Text put before every id, for sources whose ids would clash.")

    def items(self, file: SourceFile) -> Iterator[StreamItem | Rejected]:
        """Yield the items of one file. Raises SourceError if the rest of the file cannot be read."""
        raise NotImplementedError(f"{type(self).__name__} has no items()")

    def run(self, streams: Streams, work: StepWork) -> Iterator[StreamItem | Rejected]:
        """Yield the items of all files."""
        return self.parts(streams, self.items)

    def parts(
        self, streams: Streams, read: Callable[[SourceFile], Iterator[SourcePart | Rejected]]
    ) -> Iterator[SourcePart | Rejected]:
        """Yield what `read` yields for each file. A file that cannot be read does not stop the others."""
        for file in source_files(streams.path(self.path), self.endings):
            if isinstance(file, Rejected):
                yield file
                continue
            try:
                yield from read(file)
            except (SourceError, *UNREADABLE) as fault:
                yield unreadable(file.where, str(fault) or type(fault).__name__)

    def key(self, streams: Streams, runtime: Runtime) -> dict[str, Any]:
        """Return the settings and the digest of the source, whose name does not matter."""
        source = source_digest(streams.path(self.path), self.endings, runtime.store)
        return {**super().key(streams, runtime), "source": source}


def unreadable(where: str, why: str) -> Rejected:
    """Return a part of a source as rejected because it cannot be read."""
    return Rejected(key=where, reason=NOT_READ, note=f"{where}: {why}", item={})


def source_files(path: Path, endings: tuple[str, ...]) -> Iterator[SourceFile | Rejected]:
    """Yield the files of a source in a fixed order. Raises UserError if an archive cannot be opened at all."""
    if path.is_dir():
        for each in _inside(path, endings):
            inside = each.relative_to(path).as_posix()
            yield from _plain(each, inside, f"{path.resolve().name}/{inside}")
    elif path.name.lower().endswith(_TARS):
        yield from _of_tar(path, endings)
    elif path.suffix.lower() == ".zip":
        yield from _of_zip(path, endings)
    else:
        yield from _plain(path, path.name, path.name)


def _inside(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if _wanted(each.name, endings) and each.is_file())


def _wanted(name: str, endings: tuple[str, ...]) -> bool:
    base, packed = name.lower(), next((end for end in _PACKED if name.lower().endswith(end)), "")
    return not base.startswith(".") and base.removesuffix(packed).endswith(endings)


def _plain(path: Path, name: str, where: str) -> Iterator[SourceFile | Rejected]:
    try:
        with closing(_PACKED.get(path.suffix.lower(), Path.open)(path, "rb")) as stream:
            yield SourceFile(name, where, stream)
    except OSError as error:
        yield unreadable(where, error.strerror or str(error))


def _of_zip(path: Path, endings: tuple[str, ...]) -> Iterator[SourceFile | Rejected]:
    try:
        archive = zipfile.ZipFile(path)
    except UNREADABLE as error:
        raise UserError(f"{path} is not a zip file, or is truncated: {error}") from None
    with archive:
        for member in archive.infolist():
            if member.is_dir() or not _wanted(PurePosixPath(member.filename).name, endings):
                continue
            where = f"{path.name}/{member.filename}"
            if _leads_outside(member.filename):
                yield unreadable(where, "its path leads outside the archive")
                continue
            try:
                with archive.open(member) as stream:
                    yield SourceFile(member.filename, where, stream)
            except (*UNREADABLE, RuntimeError, NotImplementedError) as error:  # a password, or an unknown compression
                yield unreadable(where, str(error))


def _of_tar(path: Path, endings: tuple[str, ...]) -> Iterator[SourceFile | Rejected]:
    last = ""
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                last = member.name
                if not member.isfile() or not _wanted(PurePosixPath(last).name, endings):
                    continue
                stream = archive.extractfile(member)
                if _leads_outside(last) or stream is None:
                    yield unreadable(f"{path.name}/{last}", "its path leads outside the archive")
                else:
                    yield SourceFile(last, f"{path.name}/{last}", stream)
    except UNREADABLE as error:
        if not last:
            raise UserError(f"{path} is not a tar file, or is truncated: {error}") from None
        yield unreadable(path.name, f"the archive is truncated or damaged after {last}: {error}")


def _leads_outside(name: str) -> bool:
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0]


def source_digest(path: Path, endings: tuple[str, ...], store: Store) -> str:
    """Return a digest of a source's bytes. A large file is read again only if its size, times or inode changed."""
    return files_digest(_inside(path, endings), path, store) if path.is_dir() else file_digest(path, store)
