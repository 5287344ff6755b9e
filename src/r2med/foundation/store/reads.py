"""Note what is read from a store inside a block, so that exactly this can be packed and passed on.

While reads are noted, nothing that a pack holds is made: what is missing raises UserError. So a block that ends without
an error needs no model, no key and no network where everything that it noted is in the store.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Collection, Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path

from r2med.foundation.core.errors import UserError

PACKED_KINDS = (
    "run",
    "vectors",
    "query-vectors",
    "token-vectors",
    "query-token-vectors",
    "term-weights",
    "query-term-weights",
    "recall",
)
"""Kinds of artefacts that a pack may hold. Indexes are left out: they are made from the others in seconds, and a
library reads them without checks."""


class Reads:
    """The keys that were read in a block. It is thread-safe."""

    def __init__(self, search_again: bool = False) -> None:
        self.searches_again = search_again
        """True if stored rankings are to be searched again."""
        self.artefacts: set[tuple[str, str]] = set()
        """(kind, key) of each artefact."""
        self.rows: dict[Path, set[bytes]] = {}
        """File -> keys of its rows."""
        self._lock = threading.Lock()

    def add_artefact(self, kind: str, key: str, found: bool) -> None:
        """Note an artefact. Raises UserError if a pack would hold it and it is missing."""
        if kind not in PACKED_KINDS:
            return
        if not found:
            raise UserError(f"{kind} {key[:8]} is missing in this store")
        with self._lock:
            self.artefacts.add((kind, key))

    def add_rows(self, file: Path, keys: Sequence[bytes], found: Collection[bytes]) -> None:
        """Note rows of a file. Raises UserError if one is missing."""
        wanted = {*keys}
        if missing := len(wanted - {*found}):
            raise UserError(f"{missing:,} of {len(wanted):,} rows of {file.name} are missing in this store")
        with self._lock:
            self.rows.setdefault(file, set()).update(wanted)


_reads: ContextVar[Reads | None] = ContextVar("r2med_reads", default=None)


def current_reads() -> Reads | None:
    """Return the reads of the block around; None if nobody notes them. Threads do not inherit them."""
    return _reads.get()


@contextlib.contextmanager
def noted_reads(*, search_again: bool = False) -> Iterator[Reads]:
    """Yield the reads that happen inside the block.

    With `search_again`, stored rankings are searched again, so that the vectors behind them are noted, too.
    """
    reads = Reads(search_again)
    token = _reads.set(reads)
    try:
        yield reads
    finally:
        _reads.reset(token)
