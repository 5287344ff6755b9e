"""Corpus: ordered document ids and texts in memory-mapped Arrow files, so that a large corpus opens at once."""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.foundation.store.files import let_go, map_array
from r2med.foundation.text.plurals import counted

SCHEMA = pa.schema([("id", pa.string()), ("text", pa.large_string())])
DOCUMENTS, REPEATS = "documents.arrow", "repeats.arrow"
BATCH_ROWS = 1024
"""Documents per Arrow batch. Every batch but the last is full, so the batch of a row is found by division."""

BLOCK_BYTES = 1 << 20
"""Size of the texts of a block, which a thread reads at a time. Hashes of texts take twenty times as much memory."""
RESIDENT_BYTES = 32 << 20
"""Bytes of a file that are read before their pages are released. This limits the memory of a pass over a corpus."""

Rows = npt.NDArray[np.int32]


class Corpus:
    """Ordered documents. Inside the package a row number identifies a document; ids are used at the borders."""

    def __init__(
        self,
        table: pa.Table,
        order: Rows,
        fingerprint: str = "",
        repeats: Corpus | None = None,
        pages: mmap.mmap | None = None,
    ) -> None:
        self._table = table
        self._order = order
        self._pages = pages
        self._resident = 0
        self._ranks: Rows | None = None
        self.fingerprint = fingerprint
        self.repeats = repeats
        """The rows of the source whose id occurs again later, in order; None if all ids are distinct. These rows are
        not documents, but the BM25 of the original code counts them in its statistics."""

    def __repr__(self) -> str:
        return f"Corpus({counted(len(self), 'document')})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Corpus, (self._table, self._order, self.fingerprint, self.repeats)  # another process lacks the file

    @classmethod
    def open(cls, folder: Path | str, fingerprint: str) -> Corpus:
        """Open the files that `corpus_writer` wrote. Their texts stay on disk."""
        folder = Path(folder)
        repeats = folder / REPEATS
        order = map_array(folder / "order.npy")
        table, pages = _mapped(folder / DOCUMENTS)
        return cls(table, order, fingerprint, cls.unsorted(repeats) if repeats.exists() else None, pages)

    @classmethod
    def unsorted(cls, path: Path | str) -> Corpus:
        """Open a file of rows whose ids may repeat. Rows can be read, but not looked up by id."""
        table, pages = _mapped(Path(path))
        return cls(table, np.arange(len(table), dtype=np.int32), pages=pages)

    @classmethod
    def of(cls, documents: Iterable[tuple[str, str]]) -> Corpus:
        """Make a corpus in memory from (id, text) pairs with distinct ids."""
        table = pa.Table.from_batches(record_batches(documents), schema=SCHEMA)
        order = pc.sort_indices(table.column(0))
        ids = table.column(0).take(order)
        if len(ids) > 1 and pc.any(pc.equal(ids[1:], ids[:-1])).as_py():
            raise ValueError("document ids must be distinct")
        corpus = cls(table, np.asarray(order, dtype=np.int32))
        corpus.fingerprint = corpus_digest(corpus)
        return corpus

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for _, ids, texts in self.batches():
            yield from zip(ids.to_pylist(), texts.to_pylist(), strict=True)

    def batches(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, pa.Array, pa.Array]]:
        """Yield (first row, ids, texts) of consecutive ranges of rows, as Arrow arrays without copying."""
        stop = len(self) if stop is None else min(stop, len(self))
        while start < stop:
            number, offset = divmod(start, BATCH_ROWS)
            ids, texts = (self._read(column, number).slice(offset, stop - start) for column in (0, 1))
            yield start, ids, texts
            start += len(ids)

    def stretches(
        self, size: int, documents: int | None = None, start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, int]]:
        """Yield (start, stop) of row ranges with a limited size of text. A longer text is a range by itself."""
        sizes = [np.asarray(pc.binary_length(texts), dtype=np.int64) for _, _, texts in self.batches(start, stop)]
        ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), *sizes]))
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
        table = self._table.slice(start, stop - start)
        table = table.combine_chunks() if start % BATCH_ROWS else table
        batches = table.to_batches(max_chunksize=BATCH_ROWS)
        table = pa.Table.from_batches(batches, schema=SCHEMA)
        return Corpus(table, np.arange(len(table), dtype=np.int32), pages=self._pages)

    def id(self, row: int) -> str:
        """Return the id of one document."""
        number, offset = divmod(int(row), BATCH_ROWS)
        return cast(str, self._read(0, number)[offset].as_py())

    def text(self, row: int) -> str:
        """Return the text of one document."""
        number, offset = divmod(int(row), BATCH_ROWS)
        return cast(str, self._read(1, number)[offset].as_py())

    def ids(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the ids of many documents."""
        return self._take(0, rows)

    def texts(self, rows: Sequence[int] | Rows) -> list[str]:
        """Return the texts of many documents."""
        return self._take(1, rows)

    def row(self, identifier: str) -> int | None:
        """Return the row of a document id, by binary search over the sorted ids on disk; None if the id is unknown."""
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self.id(self._order[middle]) < identifier:
                low = middle + 1
            else:
                high = middle
        if low < len(self) and self.id(self._order[low]) == identifier:
            return int(self._order[low])
        return None

    def rows(self, identifiers: Sequence[str]) -> Rows:
        """Return the rows of many document ids, -1 for unknown ids."""
        if len(identifiers) * 32 < len(self):  # fewer probes than hashing every id of the corpus
            rows = [self.row(identifier) for identifier in identifiers]
            return np.array([-1 if row is None else row for row in rows], dtype=np.int32)
        wanted = pa.array(identifiers, pa.string())
        ids = pa.chunked_array([ids for _, ids, _ in self.batches()], pa.string())
        return np.asarray(pc.fill_null(pc.index_in(wanted, value_set=ids), -1), dtype=np.int32)

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

    def _take(self, column: int, rows: Sequence[int] | Rows) -> list[str]:
        wanted = np.asarray(rows, dtype=np.int64)
        out = np.empty(len(wanted), dtype=object)
        by_row = np.argsort(wanted, kind="stable")
        numbers = wanted[by_row] // BATCH_ROWS
        for indices in np.split(by_row, np.flatnonzero(np.diff(numbers)) + 1):
            if len(indices):
                texts = self._read(column, int(wanted[indices[0]] // BATCH_ROWS))
                out[indices] = texts.take(pa.array(wanted[indices] % BATCH_ROWS)).to_pylist()
        return cast(list[str], out.tolist())

    def _read(self, column: int, number: int) -> pa.Array:
        """Return the ids or texts of a batch. Pages of the file that were read before are released now and then."""
        batch = self._table.column(column).chunk(number)
        self._resident += batch.nbytes
        if self._pages is not None and self._resident > RESIDENT_BYTES:
            self._resident = 0
            let_go(self._pages)
        return batch


def _mapped(path: Path) -> tuple[pa.Table, mmap.mmap]:
    """Map a file of batches into memory. Nothing is copied, and texts are read from the disk when they are used."""
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return pa.ipc.open_file(pa.BufferReader(pages)).read_all(), pages


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
    _add_rows(state, corpus)
    if corpus.repeats is not None:
        state.update(b"repeats\n")
        _add_rows(state, corpus.repeats)
    return state.hexdigest()[:32]


def _add_rows(state: hashlib._Hash, corpus: Corpus) -> None:
    for identifier, text in corpus:
        i, t = identifier.encode(), text.encode()
        state.update(b"%d %d\n%b%b" % (len(i), len(t), i, t))
