"""Write TREC run files that can be read back unchanged.

The format separates columns by white space. So an id is percent-encoded if it contains white space, a percent sign that
looks like an escape, or a leading number sign, which would make the line a comment.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from urllib.parse import quote

import numpy as np

from r2med.core.errors import UserError
from r2med.retrieve.run import Run

_GZIP = 31  # zlib's window size for the gzip format
_AWKWARD = re.compile(r"^#|\s|%(?=[0-9A-Fa-f]{2})|[\x00-\x20\x7f-\xa0]")


def encode_id(identifier: str) -> str:
    """Return an id without white space."""
    return _AWKWARD.sub(lambda match: quote(match.group(), safe=""), identifier)


def format_run(run: Run, tag: str) -> Iterator[bytes]:
    """Yield the text of a TREC run file, query by query. Scores keep all digits of float32."""
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


def write_run(run: Run, path: Path, tag: str = "r2med", header: Iterable[str] = ()) -> None:
    """Write a TREC run, gzipped if the name ends in .gz. The same run always gives the same bytes.

    The lines of `header` come first. Each must begin with a number sign.
    """
    from r2med.store.files import write_atomically

    content = chain((f"{line}\n".encode() for line in header), format_run(run, tag))
    write_atomically(path, _zipped(content) if path.suffix == ".gz" else content)


def _zipped(content: Iterable[bytes]) -> Iterator[bytes]:
    # Level 1 gives files that are a seventh larger, in a quarter of the time. No date is written.
    compressor = zlib.compressobj(1, zlib.DEFLATED, _GZIP)
    for part in content:
        yield compressor.compress(part)
    yield compressor.flush()


def read_judged_run(path: Path, qrels: Mapping[str, Mapping[str, int]]) -> Run:
    """Read a run to score it.

    Percent-encoded ids are decoded if the qrels then judge more documents of the run.
    """
    as_written = Run.read(path)
    ids = as_written.documents.ids(as_written.distinct()[0])
    if not any("%" in identifier for identifier in (*as_written.queries, *ids)):
        return as_written
    try:
        decoded = Run.read(path, encoded=True)
    except UserError:  # Two ids of a foreign run would become equal.
        return as_written
    return decoded if _judged(decoded, qrels) > _judged(as_written, qrels) else as_written


def _judged(run: Run, qrels: Mapping[str, Mapping[str, int]]) -> int:
    """Return how many documents of a run are judged."""
    pairs = ((query, document) for query, ids in zip(run.queries, run.id_lists(), strict=True) for document in ids)
    return sum(query in qrels and document in qrels[query] for query, document in pairs)
