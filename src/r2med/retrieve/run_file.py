"""Reading TREC run files: any, gzipped or not, every fault named by its line. Lines that begin with # are comments."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from r2med.core.errors import UserError

Rankings = dict[str, dict[str, float]]
"""Query id -> document id -> score."""

PACKED = 100
"""How many times its size a gzipped run file may unpack to: real ones come to 3 to 20."""

SMALL = 64 << 20
"""Bytes that any file may unpack to."""


def decode_id(written: str) -> str:
    """Return the id that `trec.encode_id` was given."""
    return unquote(written, errors="surrogateescape") if "%" in written else written


def read_rankings(path: Path, encoded: bool = False) -> Rankings:
    """Return the scores of a run file; `encoded` undoes what our writer does to awkward ids."""
    rankings: Rankings = {}
    for number, line in _lines(path):
        query, document, score = _parse(path, number, line)
        if encoded:
            query, document = decode_id(query), decode_id(document)
        scores = rankings.setdefault(query, {})
        if document in scores:
            raise UserError(f"{path}:{number}: document {document!r} comes twice for query {query!r}")
        scores[document] = score
    return rankings


def require_run_file(path: Path) -> None:
    """Raise UserError if a path is no run file: reading a device or a pipe may never end."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a run file")
    if not path.exists():
        raise UserError(f"{path}: no such run file")
    if not path.is_file():
        raise UserError(f"{path} is a device or a pipe, not a run file: write the run to a file and name that")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    require_run_file(path)
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            source = io.BufferedReader(_Limited(path)) if packed else file
            for number, line in enumerate(io.TextIOWrapper(source, encoding="utf-8-sig", newline="\n"), 1):
                if line.strip() and not line.startswith("#"):
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a TREC run in UTF-8 ({error})") from None


class _Limited(gzip.GzipFile):
    """A gzipped file that is not read on when it unpacks to more than any run file does."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path
        self._left = max(SMALL, path.stat().st_size * PACKED)

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        count = super().readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise UserError(
                f"{self._path}: unpacks to more than {PACKED} times its size, which no run file does: "
                "unpack it yourself if it is one"
            )
        return count


def _parse(path: Path, number: int, line: str) -> tuple[str, str, float]:
    columns = line.split()
    if len(columns) != 6:
        raise UserError(f"{path}:{number}: {len(columns)} columns instead of 6 (query Q0 document rank score tag)")
    try:
        score = float("nan" if "_" in columns[4] else columns[4])  # Python would read 1_000 as 1000
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise UserError(f"{path}:{number}: score {columns[4]!r} is not a number")
    return columns[0], columns[2], score
