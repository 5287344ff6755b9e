"""Write files completely or not at all (temporary file, fsync, rename), map them, lock them and hash them."""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from r2med.foundation.core.errors import UserError
from r2med.foundation.store.sharing import give_access, held, private_folder

OTHER_FILES = 1024
"""Maximum number of files that a process has open besides mapped ones."""


def sha256(path: Path) -> str:
    """Return the hex SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_state(path: Path) -> list[int]:
    """Return the size, times and inode of a file. The inode's change time cannot be set by a program."""
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


def refuse_device(path: Path) -> None:
    """Raise UserError if a path is a device. Reading one such as /dev/zero never ends and fills the memory."""
    if path.is_char_device() or path.is_block_device():
        raise UserError(f"{path} is a device, not a file: give the path of a file")


def refuse_other_case(path: Path, folder: Path) -> None:
    """Raise UserError if `folder` has a name on the way to `path` that differs only in capital letters.

    On macOS and Windows the two are one file, so that what belongs to another name would be replaced silently.
    """
    for part in (each for each in (path, *path.parents) if each.is_relative_to(folder) and each != folder):
        for other in part.parent.iterdir() if part.parent.is_dir() else ():
            if other.name != part.name and other.name.casefold() == part.name.casefold():
                raise UserError(
                    f"{other} exists, and {part} differs from it only in capital letters, which are one file on some "
                    "computers: choose another name or folder"
                )


def check_writable(out: Path, setting: object) -> None:
    """Raise UserError if a folder cannot be made or written to. The error names the setting that chooses another.

    The folder is not made: what is checked next may find that there is nothing to write.
    """
    try:
        existing = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(f"cannot write to {out} ({reason}): choose another folder with {setting}") from None


def sync(path: Path) -> None:
    """Flush a file or folder to the disk, so that a later rename cannot reach the disk before the content."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_atomically(path: Path, content: bytes | Iterable[bytes], *, private: bool = False) -> None:
    """Write a whole file, or leave the old one unchanged if this fails. Missing parent folders are made.

    A private file can be read by those who may read its folder's files: its owner, or a group that shares the folder.
    """
    if private:
        private_folder(path.parent)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
    with held(path, partial(Path.touch, mode=0o600 if private else 0o666)) as temporary:
        if private:
            give_access(temporary)
        with temporary.open("wb") as file:
            file.writelines([content] if isinstance(content, bytes) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    sync(path.parent)


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Save an array as .npy. Unlike `np.save`, a full disk raises an OSError that names its cause."""
    with array_file(path, array.dtype, array.shape) as add:
        add(array)


@contextlib.contextmanager
def array_file(
    path: Path, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> Iterator[Callable[[npt.NDArray[Any]], None]]:
    """Yield a function that appends parts to the array of an .npy file. All parts together must have this shape."""
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)

        def add(part: npt.NDArray[Any]) -> None:
            if part.size:
                file.write(np.ascontiguousarray(part, dtype).data.cast("B"))

        yield add


def map_array(path: Path) -> npt.NDArray[Any]:
    """Open an .npy file memory-mapped and read-only. Pickled content is refused."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except ValueError:  # an array without elements cannot be mapped, only read
        array = np.load(path, allow_pickle=False)
    return array  # type: ignore[no-any-return]


def let_go(mapped: mmap.mmap | npt.NDArray[Any]) -> None:
    """Release the memory pages of a mapped file. They are loaded again when they are read again."""
    pages: object = mapped
    while isinstance(pages, np.ndarray):  # of a slice: the whole array, and below that the file
        pages = pages.base
    if isinstance(pages, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        pages.madvise(mmap.MADV_DONTNEED)


def allow_open_files(count: int) -> None:
    """Raise the limit of open files by `count` if the system allows it. Each mapped file counts as open."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OTHER_FILES + count if most == resource.RLIM_INFINITY else min(OTHER_FILES + count, most)
    if limit != resource.RLIM_INFINITY and limit < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def digest(value: Any) -> str:
    """Return 32 hex digits for a JSON-like value. Equal values give equal digits, whatever the order of dict keys."""
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()[:32]


def text_digest(text: str) -> bytes:
    """Return the SHA-256 of a text. Lone surrogates, which UTF-8 cannot encode, are kept as they are."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def write_json(path: Path, value: Any) -> None:
    """Write a value as a JSON file that people can read, completely or not at all."""
    write_atomically(path, json.dumps(value, indent=1, ensure_ascii=False).encode() + b"\n")


def json_object(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file; an empty one if the file is missing, damaged or has another value."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def json_line(row: Mapping[str, Any]) -> bytes:
    """Return a row as a line of a file of JSON lines."""
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


@contextlib.contextmanager
def replaced(folder: Path, mark: str, noun: str) -> Iterator[Path]:
    """Yield a new, empty folder that replaces `folder` at the end of the block. If the block fails, nothing changes.

    Raises UserError if the folder exists and was not written in this way. The file `mark` identifies such a folder.
    """
    folder = folder.resolve()
    if folder.exists() and not (folder / mark).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder} is not {noun} of r2med, so it is not overwritten: choose another folder with -o")
    with scratch_beside(folder) as new:
        yield new
        swap(new, folder)


def scratch_beside(folder: Path, *, private: bool = True) -> contextlib.AbstractContextManager[Path]:
    """Return a block with a new, hidden folder beside `folder`, which is removed afterwards.

    A folder that may hold somebody's texts is private: only its owner can read it.
    """
    return held(folder, private_folder if private else partial(Path.mkdir, parents=True))


def swap(new: Path, folder: Path) -> None:
    """Put a new folder in the place of another one, which is removed. If this fails, the old one is put back.

    Who may read the old folder may read the new one. If the process is killed in between, the old one stays beside it
    under a name that ends in .old.
    """
    old = new.with_suffix(".old")
    if folder.exists():
        new.chmod(stat.S_IMODE(folder.stat().st_mode))
        folder.rename(old)
    try:
        new.rename(folder)
    except BaseException:
        with contextlib.suppress(OSError):
            old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def strict_json(content: bytes) -> Any:
    """Return the value of a JSON text. Raises ValueError if a key occurs twice: tools differ in which one they read."""
    return json.loads(content, object_pairs_hook=_without_twins)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("a key occurs twice")
    return fields
