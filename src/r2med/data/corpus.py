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

    def __init__(self, batches: Batches, order: Rows, fingerprint: str, repeats: Corpus | None = None) -> None:
        self._batches = batches
        self._order = order
        self._ranks: Rows | None = None
        self.fingerprint = fingerprint
        self.repeats = repeats
        """The rows of the source whose id occurs again later, in order; None if all ids are distinct. These rows are
        not documents, but the BM25 of the original code counts them in its statistics."""

    def __repr__(self) -> str:
        return f"Corpus({counted(len(self), 'document')})"

    @classmethod
    def open(cls, folder: Path | str, fingerprint: str) -> Corpus:
        """Open the files that `corpus_writer` wrote. Only the footer is read."""
        folder = Path(folder)
        repeats = folder / REPEATS
        order = map_array(folder / "order.npy")
        return cls(
            Batches.open(folder / DOCUMENTS), order, fingerprint, cls.unsorted(repeats) if repeats.exists() else None
        )

    @classmethod
    def unsorted(cls, path: Path | str) -> Corpus:
        """Open a file of rows whose ids may repeat. Rows can be read, but not looked up by id."""
        batches = Batches.open(Path(path))
        return cls(batches, np.arange(batches.rows, dtype=np.int32), "")

    @classmethod
    def of(cls, documents: Iterable[tuple[str, str]]) -> Corpus:
        """Make a corpus in memory from (id, text) pairs with distinct ids."""
        digest = CorpusDigest()
        batches = []
        rest = iter(documents)
        while pairs := list(islice(rest, BATCH_ROWS)):
            batches.append(pa.record_batch([[i for i, _ in pairs], [t for _, t in pairs]], schema=SCHEMA))
            for identifier, text in pairs:
                digest.add(identifier, text)
        ids = pa.chunked_array([batch.column(0) for batch in batches], pa.string())
        order = pc.sort_indices(ids)
        ids = ids.take(order)
        if len(ids) > 1 and pc.any(pc.equal(ids[1:], ids[:-1])).as_py():
            raise ValueError("document ids must be distinct")
        return cls(Batches(batches), np.asarray(order, dtype=np.int32), digest.hexdigest())

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
            batch = self._batches[number].slice(offset, stop - start)
            yield start, batch.column(0), batch.column(1)
            start += len(batch)

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
        rows = [pa.record_batch([ids, texts], schema=SCHEMA) for _, ids, texts in self.batches(start, stop)]
        table = pa.Table.from_batches(rows, schema=SCHEMA)
        table = table.combine_chunks() if start % BATCH_ROWS else table
        batches = self._batches.with_rows_of(table)
        return Corpus(batches, np.arange(table.num_rows, dtype=np.int32), "")

    def id(self, row: int) -> str:
        """Return the id of one document."""
        number, offset = divmod(int(row), BATCH_ROWS)
        return cast(str, self._batches[number].column(0)[offset].as_py())

    def text(self, row: int) -> str:
        """Return the text of one document."""
        number, offset = divmod(int(row), BATCH_ROWS)
        return cast(str, self._batches[number].column(1)[offset].as_py())

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
                batch = self._batches[int(wanted[indices[0]] // BATCH_ROWS)]
                out[indices] = batch.column(column).take(pa.array(wanted[indices] % BATCH_ROWS)).to_pylist()
        return cast(list[str], out.tolist())


class Batches:
    """Arrow batches by number, from an open file or from memory."""

    def __init__(
        self, batches: Sequence[pa.RecordBatch], file: pa.RecordBatchFileReader = None, pages: Any = None
    ) -> None:
        self._batches = batches
        self._file = file
        self._pages = pages
        self._resident = 0

    @classmethod
    def open(cls, path: Path) -> Batches:
        """Map a file of batches into memory."""
        with path.open("rb") as file:
            pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return cls((), pa.ipc.open_file(pa.BufferReader(pages)), pages)

    def with_rows_of(self, table: pa.Table) -> Batches:
        """Return batches of another table whose rows are in the same memory pages."""
        return Batches(table.to_batches(max_chunksize=BATCH_ROWS), pages=self._pages)

    def __reduce__(self) -> tuple[type[Batches], tuple[Sequence[pa.RecordBatch]]]:
        return Batches, (self._batches,)  # another process does not have the file

    @property
    def rows(self) -> int:
        """The number of rows of the file."""
        count: int = self._file.num_record_batches
        return (count - 1) * BATCH_ROWS + len(self[count - 1]) if count else 0

    def __getitem__(self, number: int) -> pa.RecordBatch:
        batch = self._batches[number] if self._file is None else self._file.get_batch(number)
        self._resident += batch.nbytes
        if self._resident > RESIDENT_BYTES:
            self._resident = 0
            let_go(self._pages)
        return batch


class CorpusDigest:
    """Digest of ids and texts in order. Lengths are hashed too, so that two corpora never give the same bytes."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"r2med corpus 1\n")

    def add(self, identifier: str, text: str) -> None:
        """Add one document."""
        i, t = identifier.encode(), text.encode()
        self._hash.update(b"%d %d\n%b%b" % (len(i), len(t), i, t))

    def add_repeats(self, repeats: Corpus) -> None:
        """Add the rows whose ids occur again, after all documents."""
        self._hash.update(b"repeats\n")
        for identifier, text in repeats:
            self.add(identifier, text)

    def hexdigest(self) -> str:
        """Return the digest, which is the fingerprint of the corpus."""
        return self._hash.hexdigest()[:32]
