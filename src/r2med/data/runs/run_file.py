"""Read any TREC run file, gzipped or not. Errors name the line. Lines that begin with # are comments."""

from __future__ import annotations

import gzip
import io
import logging
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from r2med.foundation.core.errors import UserError

log = logging.getLogger("r2med")

Rankings = dict[str, dict[str, float]]
"""Query id -> document id -> score."""

MAX_PACKING_RATIO = 100
"""Maximum ratio of unpacked to packed size of a run file. Real files have 3 to 20."""

MIN_UNPACKED_LIMIT = 64 << 20
"""Number of bytes that any file may unpack to."""


def decode_id(written: str) -> str:
    """Return the id that `trec.encode_id` was given."""
    return unquote(written, errors="surrogateescape") if "%" in written else written


def read_rankings(path: Path, encoded: bool = False) -> Rankings:
    """Return the scores of a run file. `encoded` decodes ids that our writer percent-encoded.

    A foreign run may list a document twice for a query, for example because its corpus repeats an id. The better score
    counts, and one warning is logged. A file of ours that does so is damaged.
    """
    rankings: Rankings = {}
    repeated = 0
    for number, line in _lines(path):
        query, document, score = _parse(path, number, line)
        if encoded:
            query, document = decode_id(query), decode_id(document)
        scores = rankings.setdefault(query, {})
        if document in scores:
            if encoded:
                raise UserError(f"{path}:{number}: document {document!r} is listed twice for query {query!r}")
            repeated += 1
        scores[document] = max(score, scores.get(document, score))
    if repeated:
        lines = "line repeats" if repeated == 1 else "lines repeat"
        log.warning("%s: %s %s a document of the same query; its better score counts", path, f"{repeated:,}", lines)
    return rankings


def require_run_file(path: Path) -> None:
    """Raise UserError if a path is not a regular file. Reading a device or a pipe might never end."""
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a run file")
    if not path.exists():
        raise UserError(f"{path}: no such run file")
    if not path.is_file():
        raise UserError(f"{path} is a device or a pipe, not a run file; write the run to a file and use its path")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    require_run_file(path)
    try:
        with run_bytes(path) as source:
            for number, line in enumerate(io.TextIOWrapper(source, encoding="utf-8-sig", newline="\n"), 1):
                if line.strip() and not line.startswith("#"):
                    yield number, line
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a TREC run in UTF-8 ({error})") from None


@contextmanager
def run_bytes(path: Path) -> Iterator[io.BufferedReader]:
    """Open the content of a run file, unpacked if it is packed."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        yield io.BufferedReader(_Limited(path)) if packed else file


class _Limited(gzip.GzipFile):
    """A gzipped file that stops with an error if it unpacks to more than any real run file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._path = path
        self._left = max(MIN_UNPACKED_LIMIT, path.stat().st_size * MAX_PACKING_RATIO)

    def readinto(self, buffer: Any) -> int:
        """Read some bytes."""
        count = super().readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise UserError(
                f"{self._path}: unpacks to more than {MAX_PACKING_RATIO} times its size, "
                "which is too much for a run file; if it is one, unpack it first"
            )
        return count


def _parse(path: Path, number: int, line: str) -> tuple[str, str, float]:
    columns = line.split()
    if len(columns) != 6:
        raise UserError(f"{path}:{number}: {len(columns)} columns instead of 6 (query Q0 document rank score tag)")
    try:
        # Python would read 1_000 as 1000, and digits of other scripts, which other tools do not know.
        score = float(columns[4] if columns[4].isascii() and "_" not in columns[4] else "nan")
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise UserError(f"{path}:{number}: score {columns[4]!r} is not a number")
    return columns[0], columns[2], score
