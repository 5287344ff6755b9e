"""Write TREC run files that can be read back unchanged, and read parts of them.

The format separates columns by white space. So an id is percent-encoded if it contains white space, a percent sign that
looks like an escape, or a leading number sign, which would make the line a comment.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote

import numpy as np

from r2med.data.runs.run import Run
from r2med.data.runs.run_file import decode_id
from r2med.foundation.core.errors import UserError

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


def write_run(run: Run, path: Path, tag: str = "r2med") -> None:
    """Write a TREC run, gzipped if the name ends in .gz. The same run always gives the same bytes."""
    from r2med.foundation.store.files import write_atomically

    content = format_run(run, tag)
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


class WrittenRun:
    """The rankings of a run file of ours by query. Raises UserError if the file is missing or damaged.

    Reading the whole file takes a hundred times longer, and a board needs only twenty documents out of a thousand.
    """

    def __init__(self, path: Path, queries: Iterable[str]) -> None:
        """Find the first line of each query. `queries` are all queries of the file, preferably in its order."""
        try:
            content = path.read_bytes()
            content = zlib.decompress(content, _GZIP) if path.suffix == ".gz" else content
        except (OSError, zlib.error) as error:
            raise UserError(f"{path}: the run cannot be read ({error}); run the system again") from None
        self._lines = b"\n" + content
        self._starts: dict[str, int] = {}
        after = 0
        for query in queries:
            first = f"\n{encode_id(query)} Q0 ".encode()
            start = self._lines.find(first, after)
            start = start if start >= 0 else self._lines.find(first, 0, after)
            if start >= 0:
                after = self._starts[query] = start
        bounds = [*sorted(self._starts.values()), len(self._lines)]
        self._ends = dict(pairwise(bounds))

    def top(self, query: str, depth: int) -> list[tuple[str, float]]:
        """Return the first documents of a query with their scores, or an empty list if the query found nothing."""
        start, stop = self._span(query)
        lines = self._lines[start + 1 : stop].split(b"\n", depth)[:depth]
        columns = [line.decode().split(" ") for line in lines if line]
        return [(decode_id(document), float(score)) for _, _, document, _, score, _ in columns]

    def rank(self, query: str, document: str) -> int:
        """Return the rank of a document, or 0 if it is not in the ranking."""
        column = f" Q0 {encode_id(document)} ".encode()
        start = self._lines.find(column, *self._span(query))
        if start < 0:
            return 0
        start += len(column)
        return int(self._lines[start : self._lines.index(b" ", start)])

    def _span(self, query: str) -> tuple[int, int]:
        start = self._starts.get(query)
        return (0, 0) if start is None else (start, self._ends[start])
