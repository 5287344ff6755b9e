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
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

import numpy as np

from r2med.errors import UserError
from r2med.retrieve.run import IdTable, Run

_AWKWARD = re.compile(r"\s|%(?=[0-9A-Fa-f]{2})|[\x00-\x20\x7f-\xa0]")


def encode_id(identifier: str) -> str:
    """Return an id without white space."""
    return _AWKWARD.sub(lambda match: quote(match.group(), safe=""), identifier)


def decode_id(written: str) -> str:
    """Return the id that `encode_id` was given."""
    return unquote(written, errors="surrogateescape") if "%" in written else written


def format_run(run: Run, tag: str) -> bytes:
    """Return the text of a TREC run file; scores keep every digit that float32 has."""
    out = io.StringIO()
    tag = encode_id(tag) or "r2med"
    for (query, ranking), scores in zip(run, run.scores, strict=True):
        name = encode_id(query)
        for rank, (document, _) in enumerate(ranking):
            out.write(f"{name} Q0 {encode_id(document)} {rank + 1} {scores[rank]!s} {tag}\n")
    return out.getvalue().encode()


def write_run(run: Run, path: Path, tag: str = "r2med") -> None:
    """Write a TREC run, gzipped if the name ends in .gz; the same run gives the same bytes."""
    from r2med.store.files import write_atomically

    content = format_run(run, tag)
    write_atomically(path, gzip.compress(content, 6, mtime=0) if path.suffix == ".gz" else content)


def read_run(path: Path, encoded: bool = False) -> Run:
    """Read any TREC run file, gzipped or not; `encoded` undoes what our writer does to awkward ids."""
    found: dict[str, dict[str, float]] = {}
    for number, line in _lines(path):
        query, document, score = _parse(path, number, line)
        if encoded:
            query, document = decode_id(query), decode_id(document)
        scores = found.setdefault(query, {})
        if document in scores:
            raise UserError(f"{path}:{number}: document {document!r} comes twice for query {query!r}")
        scores[document] = score
    table = IdTable(tuple(sorted({document for scores in found.values() for document in scores})))
    row_of = {identifier: row for row, identifier in enumerate(table.table)}
    with np.errstate(over="ignore"):  # what is too large for single precision is infinite, as trec_eval has it
        arrays = [
            (
                np.array([row_of[d] for d in scores], dtype=np.int32),
                np.array(list(scores.values()), dtype=np.float32),
            )
            for scores in found.values()
        ]
    return Run.ranked(list(found), arrays, table)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
        text = raw.decode("utf-8-sig")
    except FileNotFoundError:
        raise UserError(f"{path}: no such run file") from None
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a run file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile, UnicodeDecodeError) as error:
        raise UserError(f"{path}: not a TREC run in UTF-8 ({error})") from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line


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
