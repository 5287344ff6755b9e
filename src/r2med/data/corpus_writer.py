"""Writing a corpus to disk: one pass over the source, repeated rows merged, ids sorted for look-up.

Memory is a few dozen bytes a document (ids, a hash of each text, the order), whatever the texts weigh.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import BATCH, SCHEMA, Corpus, FingerprintHasher
from r2med.data.problems import Problems
from r2med.data.source_rows import Document, place
from r2med.store.files import write_array


@dataclass(frozen=True)
class Written:
    """What one pass over a source made."""

    fingerprint: str
    rows: int
    repeated: int


def write_corpus(documents: Iterable[Document], folder: Path, problems: Problems) -> Written:
    """Write `documents.arrow` and `order.npy` into the folder.

    Rows that repeat an id with the same text are left out; with another text they are reported as problems.
    """
    draft = folder / "draft.arrow"
    origins = _Origins()
    hashes = _write_batches(draft, origins.noting(documents))
    ids = _ids(draft)
    order = np.asarray(pc.sort_indices(ids), dtype=np.int64)
    in_order = ids.take(pa.array(order))
    same = np.zeros(len(order), dtype=bool)
    if len(order) > 1:
        same[1:] = np.asarray(pc.equal(in_order[1:], in_order[:-1]))
    repeated, clashes = _repeated_rows(order, same, hashes, origins, in_order, problems)
    if len(repeated):
        keep = np.ones(len(order), dtype=bool)
        keep[repeated] = False
        _write_batches(folder / "documents.arrow", _kept(draft, keep))
        draft.unlink()
        new_row = np.cumsum(keep) - 1
        order = new_row[order[keep[order]]]
    else:
        draft.rename(folder / "documents.arrow")
    write_array(folder / "order.npy", order.astype(np.int32))
    return Written(_fingerprint(folder), len(hashes), len(repeated) - clashes)


class _Origins:
    """Which line of which file each row came from, for messages."""

    def __init__(self) -> None:
        self._lines = array("q")
        self._paths: list[Path] = []
        self._first_rows: list[int] = []

    def noting(self, documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
        """Yield id and text of each document, its origin noted."""
        for document in documents:
            if not self._paths or document.path != self._paths[-1]:
                self._paths.append(document.path)
                self._first_rows.append(len(self._lines))
            self._lines.append(document.line)
            yield document.id, document.text

    def of(self, row: int) -> tuple[Path, int]:
        """Return file and line of a row."""
        return self._paths[bisect_right(self._first_rows, row) - 1], self._lines[row]


def _write_batches(path: Path, documents: Iterable[tuple[str, str]]) -> npt.NDArray[np.uint64]:
    """Stream ids and texts into an Arrow file; return a 64-bit hash of each text."""
    hashes = bytearray()
    pending: list[tuple[str, str]] = []
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:

        def flush() -> None:
            columns = [[i for i, _ in pending], [t for _, t in pending]]
            writer.write_table(pa.table(columns, schema=SCHEMA).combine_chunks(), max_chunksize=BATCH)
            for _, text in pending:
                hashes.extend(hashlib.blake2b(text.encode(), digest_size=8).digest())
            pending.clear()

        for document in documents:
            pending.append(document)
            if len(pending) == BATCH:
                flush()
        if pending:
            flush()
    return np.frombuffer(bytes(hashes), dtype=np.uint64)


def _repeated_rows(
    order: npt.NDArray[np.int64],
    same: npt.NDArray[np.bool_],
    hashes: npt.NDArray[np.uint64],
    origins: _Origins,
    in_order: pa.ChunkedArray,
    problems: Problems,
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the rows that repeat an earlier id, and how many of them have another text than it.

    The sort is stable, so the first of a group came first.
    """
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    again = np.flatnonzero(same)
    clashes = again[hashes[order[again]] != hashes[order[first[again]]]]
    for number in clashes:
        path, line = origins.of(int(order[number]))
        earlier = place(*origins.of(int(order[first[number]])), seen_from=path)
        identifier = in_order[int(number)].as_py()
        problems.add(path, line, f"id {identifier!r} was used at {earlier} with another text: ids must be distinct")
    return order[again], len(clashes)


def _ids(path: Path) -> pa.ChunkedArray:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(i).column(0) for i in range(reader.num_record_batches)]
    return pa.chunked_array(batches, pa.string())


def _kept(path: Path, keep: npt.NDArray[np.bool_]) -> Iterator[tuple[str, str]]:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    row = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        for document in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            if keep[row]:
                yield document
            row += 1


def _fingerprint(folder: Path) -> str:
    hasher = FingerprintHasher()
    for identifier, text in Corpus.open(folder, ""):
        hasher.add(identifier, text)
    return hasher.hexdigest()
