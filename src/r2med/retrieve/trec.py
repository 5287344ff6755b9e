"""TREC run files: reading any, writing ours. What is written reads back.

The format separates columns by white space, so an id that holds some (or a percent sign that would look like
an escape) is written percent-encoded.
"""

from __future__ import annotations

import gzip
import io
import math
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import numpy as np

from r2med.errors import UserError
from r2med.retrieve.run import IdTable, Run

PACKED = 100
"""How many times its size a gzipped run file may unpack to: real ones come to 3 to 20."""

SMALL = 64 << 20
"""Bytes that any file may unpack to."""

_GZIP = 31  # zlib's window size for the gzip format
_AWKWARD = re.compile(r"\s|%(?=[0-9A-Fa-f]{2})|[\x00-\x20\x7f-\xa0]")


def encode_id(identifier: str) -> str:
    """Return an id without white space."""
    return _AWKWARD.sub(lambda match: quote(match.group(), safe=""), identifier)


def decode_id(written: str) -> str:
    """Return the id that `encode_id` was given."""
    return unquote(written, errors="surrogateescape") if "%" in written else written


def format_run(run: Run, tag: str) -> Iterator[bytes]:
    """Yield the text of a TREC run file, query by query; scores keep every digit that float32 has."""
    tag = encode_id(tag) or "r2med"
    rows, positions = run.distinct()
    documents = np.array([encode_id(document) for document in run.documents.ids(rows)], dtype=object)
    for query, found, scores, count in zip(run.queries, run.rows, run.scores, run.found, strict=True):
        name = encode_id(query)
        ids = documents[positions[found[:count]]].tolist()
        digits = scores[:count].astype(str).tolist()
        lines = [
            f"{name} Q0 {document} {rank} {score} {tag}\n"
            for rank, (document, score) in enumerate(zip(ids, digits, strict=True), 1)
        ]
        yield "".join(lines).encode()


def write_run(run: Run, path: Path, tag: str = "r2med") -> None:
    """Write a TREC run, gzipped if the name ends in .gz; the same run gives the same bytes."""
    from r2med.store.files import write_atomically

    content = format_run(run, tag)
    write_atomically(path, _zipped(content) if path.suffix == ".gz" else content)


def _zipped(content: Iterable[bytes]) -> Iterator[bytes]:
    # Level 1: a seventh larger than the usual level, in a quarter of the time. No date goes in.
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    for part in content:
        yield compressor.compress(part)
    yield compressor.flush()


def read_run(path: Path, encoded: bool = False, doubles: bool = False) -> Run:
    """Read any TREC run file, gzipped or not.

    `encoded` undoes what our writer does to awkward ids. Scores are compared as floats, as in pytrec_eval and older
    builds of trec_eval, or as `doubles`, as in trec_eval 9.0.8 and 10, where scores that differ only as doubles are no
    tie.
    """
    rankings: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        query, document, score = _parse(path, number, line)
        if encoded:
            query, document = decode_id(query), decode_id(document)
        scores = rankings.setdefault(query, {})
        if document in scores:
            raise UserError(f"{path}:{number}: document {document!r} comes twice for query {query!r}")
        scores[document] = score
    table = IdTable(tuple(sorted({document for scores in rankings.values() for document in scores})))
    row_of = {identifier: row for row, identifier in enumerate(table.table)}
    precision = np.float64 if doubles else np.float32
    with np.errstate(over="ignore"):  # what is too large for single precision is infinite, as trec_eval has it
        arrays: list[Any] = [
            (np.array([row_of[d] for d in scores], dtype=np.int32), np.array(list(scores.values()), dtype=precision))
            for scores in rankings.values()
        ]
    return Run.ranked(list(rankings), arrays, table)


def read_judged_run(path: Path, qrels: Mapping[str, Mapping[str, int]], doubles: bool = False) -> Run:
    """Read a run in order to score it; ids that our writer percent-encoded are decoded if more are judged that way."""
    as_written = read_run(path, doubles=doubles)
    ids = as_written.documents.ids(as_written.distinct()[0])
    if not any("%" in identifier for identifier in (*as_written.queries, *ids)):
        return as_written
    try:
        decoded = read_run(path, encoded=True, doubles=doubles)
    except UserError:  # two ids of another's would become one
        return as_written
    return decoded if _judged(decoded, qrels) > _judged(as_written, qrels) else as_written


def _judged(run: Run, qrels: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many documents of a run are judged."""
    pairs = ((query, document) for query, ids in zip(run.queries, run.id_lists(), strict=True) for document in ids)
    return sum(query in qrels and document in qrels[query] for query, document in pairs)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
            file.seek(0)
            source = io.BufferedReader(_Limited(path)) if packed else file
            for number, line in enumerate(io.TextIOWrapper(source, encoding="utf-8-sig", newline="\n"), 1):
                if line.strip():
                    yield number, line
    except FileNotFoundError:
        raise UserError(f"{path}: no such run file") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a run file") from None
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
        score = float(columns[4])
    except ValueError:
        score = math.nan
    if math.isnan(score):
        raise UserError(f"{path}:{number}: score {columns[4]!r} is not a number")
    return columns[0], columns[2], score
