"""Writing a corpus to disk: one pass over the source, repeated rows merged, ids sorted for look-up.

Memory is a few dozen bytes a document (ids, a hash of each text, the order), whatever the texts weigh.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import BATCH, SCHEMA, Corpus, FingerprintHasher
from r2med.data.problems import Problems
from r2med.data.rows import Document
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
    repeated = _repeated_rows(order, same, hashes, origins, in_order, problems)
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
    return Written(_fingerprint(folder), len(keep_all(order)), len(repeated))


def _write_batches(path: Path, documents: Iterable[Document]) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
    """Stream documents into an Arrow file; return a 64-bit hash of each text, and each line number."""
    hashes: list[npt.NDArray[np.uint64]] = []
    lines: list[npt.NDArray[np.int64]] = []
    pending: list[Document] = []
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:

        def flush() -> None:
            columns = [[d.id for d in pending], [d.text for d in pending]]
            writer.write_table(pa.table(columns, schema=SCHEMA).combine_chunks(), max_chunksize=BATCH)
            digests = b"".join(hashlib.blake2b(d.text.encode(), digest_size=8).digest() for d in pending)
            hashes.append(np.frombuffer(digests, dtype=np.uint64))
            lines.append(np.array([d.line for d in pending], dtype=np.int64))
            pending.clear()

        for document in documents:
            pending.append(document)
            if len(pending) == BATCH:
                flush()
        if pending:
            flush()
    if not hashes:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    return np.concatenate(hashes), np.concatenate(lines)


def _repeated_rows(
    order: npt.NDArray[np.int64],
    same: npt.NDArray[np.bool_],
    hashes: npt.NDArray[np.uint64],
    lines: npt.NDArray[np.int64],
    in_order: pa.ChunkedArray,
    source: Path,
    problems: Problems,
) -> npt.NDArray[np.int64]:
    """Return the rows that repeat an earlier id; the sort is stable, so the first of a group came first."""
    first = np.maximum.accumulate(np.where(same, 0, np.arange(len(order))))
    again = np.flatnonzero(same)
    for place in again[hashes[order[again]] != hashes[order[first[again]]]]:
        row, earlier = order[place], order[first[place]]
        problems.add(
            source,
            int(lines[row]),
            f"id {in_order[int(place)].as_py()!r} was used at line {lines[earlier]} with another text: "
            "ids must be distinct",
        )
    return order[again]


def _ids(path: Path) -> pa.ChunkedArray:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [reader.get_batch(i).column(0) for i in range(reader.num_record_batches)]
    return pa.chunked_array(batches, pa.string())


def _rows(path: Path, keep: npt.NDArray[np.bool_], lines: npt.NDArray[np.int64]) -> Iterable[Document]:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    row = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        for identifier, text in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            if keep[row]:
                yield Document(identifier, text, int(lines[row]))
            row += 1


def _fingerprint(folder: Path) -> str:
    hasher = FingerprintHasher()
    for identifier, text in Corpus.open(folder, ""):
        hasher.add(identifier, text)
    return hasher.hexdigest()
