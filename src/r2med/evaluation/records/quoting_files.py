"""Find the files below a folder that quote the texts of a dataset, also inside compressed files."""

from __future__ import annotations

import gzip
import html
import json
import re
import zipfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

WINDOW = 32
"""Letters in a row that a file must share with a text: about six words. A power of two."""
STRIDE = 8
"""Letters from one window of a text to the next. So every quotation of WINDOW + STRIDE - 1 letters is found."""
BLOCK = 4 << 20
"""Bytes of a file that are searched at once."""
OVERLAP = 4096
"""Bytes of a block that are searched again with the next one, for quotations on the border."""
MAX_BYTES = 8 << 30
"""Unpacked bytes after which a file is given up, because a small archive may unpack to any size."""
MAX_DEPTH = 3
"""Archives inside archives that are opened."""

Hashes = npt.NDArray[np.uint64]

_FACTOR = 0x9E3779B97F4A7C15
_CODE = re.compile(r"\\+u([0-9a-fA-F]{4})")
_WHITE_SPACE = re.compile(r"\\+[nrtbf]")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,300}>")
_NO_LETTERS = re.compile(r"[\W\d_]+")
_FAULTS = (
    OSError,
    EOFError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    zipfile.BadZipFile,
    zlib.error,
    pa.ArrowException,
)


@dataclass(frozen=True)
class QuotingFiles:
    """Files that quote a text, and files that could not be read to their end."""

    quoting: tuple[Path, ...] = ()
    unread: tuple[Path, ...] = ()


def text_hashes(texts: Iterable[str]) -> Hashes:
    """Return the hashes by which `quoting_files` recognises some texts.

    Texts with fewer letters than `WINDOW` have none: an answer such as "gout" says nothing about its origin.
    """
    return np.unique(np.concatenate([np.empty(0, np.uint64), *(_hashes(text)[::STRIDE] for text in texts)]))


def quoting_files(folders: Iterable[Path], hashes: Hashes, leave_out: Collection[Path] = ()) -> QuotingFiles:
    """Return the files below some folders that quote the texts with these hashes. `leave_out` are files and folders.

    Only letters count, so JSON, HTML and other marks around the words do not matter.
    """
    left_out = {path.resolve() for path in leave_out}
    quoting, unread = [], []
    for path in sorted({path for folder in folders for path in folder.rglob("*") if path.is_file()}):
        place = path.resolve()
        if left_out & {place, *place.parents}:
            continue
        try:
            if _quotes(path, hashes):
                quoting.append(path)
        except _FAULTS:
            unread.append(path)
    return QuotingFiles(tuple(quoting), tuple(unread))


def _quotes(path: Path, hashes: Hashes) -> bool:
    """Return True if a file has a window of letters with one of these hashes. Raises OSError if it is too large."""
    size = 0
    with path.open("rb") as file:
        for block in _blocks(file):
            found = np.sort(_hashes(_plain(block.decode("utf-8", "ignore"))))
            places = np.searchsorted(hashes, found)
            if len(hashes) and (hashes[np.minimum(places, len(hashes) - 1)] == found).any():
                return True
            if (size := size + len(block)) > MAX_BYTES:
                raise OSError("too large")
    return False


def _blocks(file: IO[bytes] | gzip.GzipFile, depth: int = 0) -> Iterator[bytes]:
    """Yield the content of a file in blocks that overlap. Archives and compressed files are unpacked."""
    head = file.read(4)
    file.seek(0)
    if head.startswith(b"\x1f\x8b") and depth < MAX_DEPTH:
        with gzip.GzipFile(fileobj=file) as inside:
            yield from _blocks(inside, depth + 1)
    elif head == b"PK\x03\x04" and depth < MAX_DEPTH:
        with zipfile.ZipFile(file) as archive:
            for name in archive.namelist():
                with archive.open(name) as member:
                    yield from _blocks(member, depth + 1)
    elif head == b"PAR1":
        for batch in pq.ParquetFile(file).iter_batches():
            yield json.dumps(batch.to_pylist(), ensure_ascii=False, default=str).encode("utf-8", "ignore")
    else:
        end = b""
        while block := file.read(BLOCK):
            yield end + block
            end = block[-OVERLAP:]


def _plain(content: str) -> str:
    """Return a content without the escapes of JSON and the tags and entities of HTML."""
    content = _CODE.sub(lambda match: chr(int(match[1], 16)), content)
    return html.unescape(_TAG.sub("", _WHITE_SPACE.sub(" ", content)))


def _hashes(text: str) -> Hashes:
    """Return the hash of every window of letters. Each step doubles the length of the windows."""
    letters = _NO_LETTERS.sub("", text).lower().encode("utf-32-le", "ignore")
    hashes = np.frombuffer(letters, np.uint32).astype(np.uint64)
    width, factor = 1, _FACTOR
    while width < WINDOW and len(hashes) > width:
        hashes = hashes[:-width] * np.uint64(factor) + hashes[width:]
        width, factor = 2 * width, factor * factor % 2**64
    return hashes if width == WINDOW else np.empty(0, np.uint64)
