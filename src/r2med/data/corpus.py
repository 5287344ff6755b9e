"""Corpus: ordered document ids and texts in memory-mapped Arrow files, so that a large corpus opens at once.

A corpus is written once, in one pass over its source. Repeated rows are merged, and ids are sorted for look-up. This
takes about three dozen bytes of memory per document, and the texts stay on disk.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.problems import DocumentRow, Problems, where
from r2med.foundation.store import Store
from r2med.foundation.store.files import map_array, write_array
from r2med.foundation.text.plurals import counted

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string())])
DOCUMENTS, REPEATS, ORDER = "documents.arrow", "repeats.arrow", "order.npy"
BATCH_ROWS = 1024
"""Documents per Arrow batch."""

BLOCK_BYTES = 1 << 20
"""Size of the texts of a block, which a thread reads at a time. Hashes of texts take twenty times as much memory."""
SCANNED_IDS = 1000
"""Ids of a corpus that are compared in the time of one binary search."""

Rows = npt.NDArray[np.int32]


class Corpus:
    """Ordered documents. Inside the package a row number identifies a document; ids are used at the borders."""

    def __init__(
        self, table: pa.Table, order: Rows | None = None, fingerprint: str = "", repeats: Corpus | None = None
    ) -> None:
        """Make a corpus of a table. Without the order of its ids, its rows can be read but not looked up by id."""
        self._table = table
        self._ids, self._texts = table.columns
        self._order = np.arange(len(table), dtype=np.int32) if order is None else order
        self._ranks: Rows | None = None
        self.fingerprint = fingerprint
        self.repeats = repeats
        """The rows of the source whose id occurs again later, in order; None if all ids are distinct. These rows are
        not documents, but the BM25 of the original code counts them in its statistics."""

    def __repr__(self) -> str:
        return f"Corpus({counted(len(self), 'document')})"

    @classmethod
    def open(cls, folder: Path | str, fingerprint: str) -> Corpus:
        """Open the files that `write_corpus` wrote. Their texts stay on disk."""
        folder = Path(folder)
        repeats = Corpus(_mapped(folder / REPEATS)) if (folder / REPEATS).exists() else None
        return cls(_mapped(folder / DOCUMENTS), map_array(folder / ORDER), fingerprint, repeats)

    @classmethod
    def of(cls, documents: Iterable[tuple[str, str]]) -> Corpus:
        """Make a corpus in memory from (id, text) pairs with distinct ids."""
        table = pa.Table.from_batches(record_batches(documents), schema=SCHEMA)
        order, _ = _first_and_last(table.column("id"))
        if len(order) < len(table):
            raise ValueError("document ids must be distinct")
        corpus = cls(table, order)
        corpus.fingerprint = corpus_digest(corpus)
        return corpus

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for _, ids, texts in self.batches():
            yield from zip(ids.to_pylist(), texts.to_pylist(), strict=True)

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, pa.Array, pa.Array]]:
        """Yield (first row, ids, texts) of consecutive ranges of rows, as Arrow arrays without copying."""
        for batch in self._table[start:stop].to_batches():
            yield start, *batch.columns
            start += len(batch)

    def stretches(
        self, size: int, documents: int | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of row ranges with a limited size of text. A longer text is a range by itself."""
        ends = np.concatenate([[0], np.cumsum(pc.binary_length(self._texts[start:stop]))])
        first = 0
        while first < len(ends) - 1:
            last = max(first + 1, int(ends.searchsorted(ends[first] + size, "right")) - 1)
            last = min(last, first + (documents or last))
            yield start + first, start + last
            first = last

    def text_blocks(self) -> Iterator[tuple[int, list[str]]]:
        """Yield (first row, texts) of consecutive ranges of all rows, with about a megabyte of text each."""
        return ((start, self.texts(range(start, stop))) for start, stop in self.stretches(BLOCK_BYTES))

    def part(self, start: int, stop: int) -> Corpus:
        """Return consecutive rows, which can be read and sent to other machines but not looked up by id."""
        return Corpus(self._table[start:stop])

    def id(self, row: int) -> str:
        """Return the id of one document."""
        return cast(str, self._ids[row].as_py())

    def text(self, row: int) -> str:
        """Return the text of one document."""
        return cast(str, self._texts[row].as_py())

    def ids(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the ids of many documents."""
        return [self.id(row) for row in rows]

    def texts(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the texts of many documents."""
        return [self.text(row) for row in rows]  # Arrow's `take` would first copy the texts of all documents

    def row(self, identifier: str) -> int | None:
        """Return the row of a document id, by binary search over the sorted ids on disk; None if the id is unknown."""
        place = bisect_left(self._order, identifier, key=self.id)
        if place < len(self) and self.id(self._order[place]) == identifier:
            return int(self._order[place])
        return None

    def rows(self, identifiers: Sequence[str]) -> Rows:
        """Return the rows of many document ids, -1 for unknown ids."""
        row_of: dict[str, int | None] = dict.fromkeys(identifiers)
        if len(row_of) * SCANNED_IDS < len(self):
            row_of = {identifier: self.row(identifier) for identifier in row_of}
        else:
            known = np.flatnonzero(pc.is_in(self._ids, value_set=pa.array(row_of, pa.string()))).astype(np.int32)
            row_of.update(zip(self.ids(known), known.tolist(), strict=True))
        rows = (row_of[identifier] for identifier in identifiers)
        return np.array([-1 if row is None else row for row in rows], dtype=np.int32)

    def id_ranks(self) -> Rows:
        """Return the rank of every row by id, which breaks ties. The ranks are cached because servers need them often.

        Ids ascend by code point, which is trec_eval's byte order of UTF-8.
        """
        if self._ranks is None:
            ranks = np.empty(len(self), dtype=np.int32)
            ranks[self._order] = np.arange(len(self), dtype=np.int32)
            ranks.flags.writeable = False
            self._ranks = ranks
        return self._ranks


def _mapped(path: Path) -> pa.Table:
    """Map a file of batches into memory. Nothing is copied, and the kernel reads and drops its pages as it needs."""
    return pa.ipc.open_file(pa.memory_map(str(path))).read_all()


def record_batches(documents: Iterable[tuple[str, str]]) -> Iterator[pa.RecordBatch]:
    """Yield the ids and texts of documents as full Arrow batches, and a last one."""
    rest = iter(documents)
    while pairs := list(islice(rest, BATCH_ROWS)):
        yield pa.record_batch([[i for i, _ in pairs], [t for _, t in pairs]], schema=SCHEMA)


def corpus_digest(corpus: Corpus) -> str:
    """Return the digest of ids and texts in order, and of the repeated rows after them.

    Lengths are hashed too, so that two corpora never give the same bytes.
    """
    state = hashlib.sha256(b"r2med corpus 1\n")
    for head, rows in ((b"", corpus), (b"repeats\n", corpus.repeats)):
        if rows is not None:
            state.update(head)
            for identifier, text in rows:
                i, t = identifier.encode(), text.encode()
                state.update(b"%d %d\n%b%b" % (len(i), len(t), i, t))
    return state.hexdigest()[:32]


# Write a corpus.


class _Origin(NamedTuple):
    """The file and line of a row. Those of the rows after it follow from it, up to the next origin."""

    row: int
    path: Path
    line: int


def store_corpus(documents: Iterable[DocumentRow], store: Store, problems: Problems) -> Corpus:
    """Write a corpus into the store, under its fingerprint, and open it."""
    with store.scratch() as scratch:
        fingerprint = write_corpus(documents, scratch, problems)
        artefact = store.add("corpus", fingerprint, scratch, {})
    return Corpus.open(artefact.path, fingerprint)


def write_corpus(documents: Iterable[DocumentRow], folder: Path, problems: Problems) -> str:
    """Write the files of a corpus into the folder and return its fingerprint.

    If several rows have one id, the last one counts, as in MTEB and in the original code. It takes the position of
    the first one. The rows before it are written to a file of repeats.
    """
    draft_path = folder / "draft.arrow"
    origins: list[_Origin] = []
    _write_batches(draft_path, _noting(documents, origins))
    draft = Corpus(_mapped(draft_path))
    order, last = _first_and_last(draft._ids)
    if len(order) == len(draft):
        draft_path.rename(folder / DOCUMENTS)
    else:
        by_position = np.argsort(order)
        _report_repeats(draft, order[by_position], last[by_position], origins, problems)
        _write_batches(folder / DOCUMENTS, _documents(draft, last[by_position]))
        _write_batches(folder / REPEATS, _documents(draft, np.setdiff1d(np.arange(len(draft)), last)))
        draft_path.unlink()
        order[by_position] = np.arange(len(order), dtype=np.int32)  # repeated rows leave no gaps
    write_array(folder / ORDER, order)
    return corpus_digest(Corpus.open(folder, ""))


def _noting(documents: Iterable[DocumentRow], origins: list[_Origin]) -> Iterator[tuple[str, str]]:
    """Yield id and text of each document. Its origin is noted if it is not the line after the previous one."""
    path, line = None, 0
    for row, document in enumerate(documents):
        if document.path is not path or document.line != line + 1:
            origins.append(_Origin(row, document.path, document.line))
        path, line = document.path, document.line
        yield document.id, document.text


def _write_batches(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Stream ids and texts into an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in record_batches(documents):
            writer.write_batch(batch)


def _first_and_last(ids: pa.ChunkedArray) -> tuple[Rows, Rows]:
    """Return the first and the last row of each id, in the order of the ids."""
    places = np.asarray(pc.rank(ids, tiebreaker="dense")).astype(np.int32) - 1  # equal for equal ids
    rows = np.arange(len(places), dtype=np.int32)
    first, last = np.empty((2, places.max(initial=-1) + 1), np.int32)
    last[places] = rows  # of several rows for one place, NumPy keeps the last
    first[places[::-1]] = rows[::-1]
    return first, last


def _documents(draft: Corpus, rows: npt.NDArray[np.integer]) -> Iterator[tuple[str, str]]:
    """Yield the ids and texts of rows."""
    return ((draft.id(row), draft.text(row)) for row in rows)


def _report_repeats(draft: Corpus, first: Rows, last: Rows, origins: list[_Origin], problems: Problems) -> None:
    """Report how many rows were merged, and an id whose texts differ."""
    message = f"{origins[0].path}: {len(draft) - len(first):,} repeated rows merged"
    several = np.flatnonzero(first != last)
    differing = [i for i in several if draft.text(first[i]) != draft.text(last[i])]
    if differing:
        first_row, last_row = first[differing[0]], last[differing[0]]
        path, line = _place(origins, last_row)
        earlier = where(*_place(origins, first_row), seen_from=path)
        message += (
            f"; {len(differing):,} ids came with another text, and the last one counts "
            f"(such as {draft.id(first_row)!r}: {earlier} and {path.name}:{line})"
        )
    problems.notice(message)


def _place(origins: list[_Origin], row: int) -> tuple[Path, int]:
    """Return file and line of a row."""
    origin = origins[bisect_right(origins, row, key=lambda origin: origin.row) - 1]
    return origin.path, origin.line + int(row) - origin.row
