"""Read parts of a run file that `trec.write_run` made: the top of a ranking, or one rank.

Reading the whole file takes a hundred times longer, and a board needs only twenty documents out of a thousand.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from r2med.core.errors import UserError
from r2med.retrieve.run_file import decode_id
from r2med.retrieve.trec import encode_id

_GZIP = 31  # zlib's window size for the gzip format


class WrittenRun:
    """The rankings of a run file by query. Raises UserError if the file is missing or damaged."""

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
