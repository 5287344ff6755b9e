"""Find strings in every byte of some folders, also inside compressed files."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def files_holding(words: Iterable[str], *folders: Path) -> set[str]:
    """Return "FILE: WORD" for every file below the folders that holds one of the words in any case."""
    wanted = [(word, word.lower().encode()) for word in words]
    return {
        f"{path}: {word}"
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
        for content in contents(path.read_bytes())
        for word, sought in wanted
        if sought in content.lower()
    }


def contents(content: bytes) -> Iterator[bytes]:
    """Yield a content as it is, and what is packed inside it. SQLite's files and logs are not compressed."""
    yield content
    if content.startswith(b"\x1f\x8b"):
        yield from contents(gzip.decompress(content))
    elif content.startswith(b"PK\x03\x04"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for name in archive.namelist():
                yield from contents(archive.read(name))
    elif content.startswith(b"PAR1"):
        yield str(pq.read_table(io.BytesIO(content)).to_pydict()).encode()
    elif content.startswith(b"ARROW1"):
        yield str(pa.ipc.open_file(io.BytesIO(content)).read_all().to_pydict()).encode()
