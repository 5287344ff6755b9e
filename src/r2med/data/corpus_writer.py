"""Write a corpus to disk: one pass over the source, repeated rows merged, ids sorted for look-up.

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

from r2med.data.corpus import BATCH, DOCUMENTS, REPEATS, SCHEMA, Corpus, FingerprintHasher
from r2med.data.problems import Problems
from r2med.data.source_rows import Document, where
from r2med.store.files import write_array

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Written:
    """What one pass over a source made."""

    fingerprint: str
    rows: int


def write_corpus(documents: Iterable[Document], folder: Path, problems: Problems) -> Written:
    """Write `documents.arrow` and `order.npy` into the folder, and `repeats.arrow` if ids repeat.

    Of rows with one id the last counts, as for MTEB and the original, and stands where the first one stood.
    """
    draft_path = folder / "draft.arrow"
    origins = _Origins()
    hashes = _write_batches(draft_path, origins.noting(documents))
    draft = Corpus.unsorted(draft_path)
    first, last = _first_and_last(draft)
    if len(first) == len(draft):
        draft_path.rename(folder / DOCUMENTS)
    else:
        _tell_repeats(draft, first, last, hashes, origins, problems)
        _write_batches(folder / DOCUMENTS, _last_of_each(draft, first, last, hashes))
        _write_batches(folder / REPEATS, _replaced(draft, last))
        draft_path.unlink()
    write_array(folder / "order.npy", _ranked(first).astype(np.int32))
    return Written(_fingerprint(folder), len(draft))


def _first_and_last(draft: Corpus) -> tuple[Ints, Ints]:
    """Return the first and the last row of each id, in the order of the ids."""
    ids = pa.concat_arrays(
        [pa.array([], pa.large_string()), *(ids.cast(pa.large_string()) for _, ids, _ in draft.batches())]
    )
    order = np.asarray(pc.sort_indices(ids), dtype=np.int64)  # stable: rows of one id stay in their order
    if not len(order):
        return order, order
    in_order = ids.take(pa.array(order))
    begins = np.ones(len(order) + 1, dtype=bool)
    begins[1:-1] = ~np.asarray(pc.equal(in_order[1:], in_order[:-1]))
    return order[begins[:-1]], order[begins[1:]]


def _ranked(first: Ints) -> Ints:
    """Return the rows without gaps, in the order of the ids."""
    ranks = np.empty(len(first), dtype=np.int64)
    ranks[np.argsort(first)] = np.arange(len(first))
    return ranks


def _tell_repeats(
    draft: Corpus, first: Ints, last: Ints, hashes: npt.NDArray[np.uint64], origins: _Origins, problems: Problems
) -> None:
    several = np.flatnonzero(first != last)
    another = several[hashes[first[several]] != hashes[last[several]]]
    message = f"{origins.of(0)[0]}: {len(draft) - len(first):,} repeated rows merged"
    if len(another):
        example = int(another[np.argmin(first[another])])
        path, line = origins.of(int(last[example]))
        earlier = where(*origins.of(int(first[example])), seen_from=path)
        message += (
            f"; {len(another):,} ids came with another text, and the last one counts "
            f"(such as {draft.id(int(first[example]))!r}: {earlier} and {path.name}:{line})"
        )
    problems.notice(message)


def _last_of_each(draft: Corpus, first: Ints, last: Ints, hashes: npt.NDArray[np.uint64]) -> Iterator[tuple[str, str]]:
    """Yield every id where it came first, with the text it came with last."""
    source = np.full(len(draft), -1, dtype=np.int64)
    source[first] = np.where(hashes[first] == hashes[last], first, last)
    for row, (identifier, text) in enumerate(draft):
        if source[row] >= 0:
            yield identifier, text if source[row] == row else draft.text(source[row])


def _replaced(draft: Corpus, last: Ints) -> Iterator[tuple[str, str]]:
    """Yield the rows whose id comes again."""
    counts = np.zeros(len(draft), dtype=bool)
    counts[last] = True
    for row, document in enumerate(draft):
        if not counts[row]:
            yield document


class _Origins:
    """Which line of which file each row came from, for messages."""

    def __init__(self) -> None:
        self._lines = array("q")
        self._paths: list[Path] = []
        self._first_rows: list[int] = []

    def noting(self, documents: Iterable[Document]) -> Iterator[tuple[str, str]]:
        """Yield id and text of each document, its origin noted."""
        for document in documents:
            if not self._paths or document.path is not self._paths[-1]:
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


def _fingerprint(folder: Path) -> str:
    corpus = Corpus.open(folder, "")
    hasher = FingerprintHasher()
    for identifier, text in corpus:
        hasher.add(identifier, text)
    if corpus.repeats is not None:
        hasher.add_repeats(corpus.repeats)
    return hasher.hexdigest()
