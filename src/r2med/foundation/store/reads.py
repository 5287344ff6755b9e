"""Note what is read from a store inside a block, so that exactly this can be packed and passed on.

While reads are noted, nothing that a pack holds is made: what is missing raises UserError. So a block that ends without
an error needs no model, no key and no network where everything that it noted is in the store.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from r2med.foundation.core.errors import UserError
from r2med.foundation.core.events import listening_to

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


@dataclass(frozen=True)
class ArtefactRead:
    """An artefact was looked up."""

    kind: str
    key: str
    found: bool


@dataclass(frozen=True)
class RowsRead:
    """Rows of a file were looked up."""

    file: Path
    wanted: Sequence[bytes]
    found: Collection[bytes]


@dataclass(frozen=True)
class RankingRead:
    """A stored ranking is used. `search` makes it again."""

    search: Callable[[], object]


class Reads:
    """The keys that were read in a block. It is thread-safe."""

    def __init__(self) -> None:
        self.artefacts: set[tuple[str, str]] = set()
        """(kind, key) of each artefact."""
        self.rows: dict[Path, set[bytes]] = {}
        """File -> keys of its rows."""
        self._lock = threading.Lock()

    def add_artefact(self, read: ArtefactRead) -> None:
        """Note an artefact. Raises UserError if a pack would hold it and it is missing."""
        if read.kind not in PACKED_KINDS:
            return
        if not read.found:
            raise UserError(f"{read.kind} {read.key[:8]} is missing in this store")
        with self._lock:
            self.artefacts.add((read.kind, read.key))

    def add_rows(self, read: RowsRead) -> None:
        """Note rows of a file. Raises UserError if one is missing."""
        wanted = {*read.wanted}
        if missing := len(wanted - {*read.found}):
            raise UserError(f"{missing:,} of {len(wanted):,} rows of {read.file.name} are missing in this store")
        with self._lock:
            self.rows.setdefault(read.file, set()).update(wanted)


@contextlib.contextmanager
def unnoted_reads() -> Iterator[None]:
    """Note no artefact inside the block."""
    with listening_to(ArtefactRead, lambda read: None):
        yield


@contextlib.contextmanager
def noted_reads(*, search_again: bool = False) -> Iterator[Reads]:
    """Yield the reads that happen inside the block.

    With `search_again`, stored rankings are searched again, so that the vectors behind them are noted, too.
    """
    reads = Reads()

    def search(read: RankingRead) -> None:
        if search_again:
            read.search()

    with (
        listening_to(ArtefactRead, reads.add_artefact),
        listening_to(RowsRead, reads.add_rows),
        listening_to(RankingRead, search),
    ):
        yield reads
