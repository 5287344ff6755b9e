"""Write a corpus to disk in one pass over the source: merge repeated rows and sort ids for look-up.

Memory is about two dozen bytes per document, for its position among the ids, whatever the size of its id and text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from r2med.data.corpus import DOCUMENTS, REPEATS, SCHEMA, Corpus, corpus_digest, record_batches
from r2med.data.problems import Problems
from r2med.data.source_rows import DocumentRow, where
from r2med.foundation.store.files import write_array

Rows = npt.NDArray[np.int32]

SORTED_IDS = 1 << 20
"""Number of ids that are sorted at a time."""
SAMPLED_IDS = 256
"""Number of ids per sorted part from which the bounds of the parts are chosen."""


@dataclass(frozen=True)
class WrittenCorpus:
    """The result of writing a corpus."""

    fingerprint: str
    rows: int


def write_corpus(documents: Iterable[DocumentRow], folder: Path, problems: Problems) -> WrittenCorpus:
    """Write `documents.arrow` and `order.npy` into the folder, and `repeats.arrow` if ids repeat.

    If several rows have one id, the last one counts, as in MTEB and in the original code. It takes the position of
    the first one.
    """
    draft_path = folder / "draft.arrow"
    origins: list[_Origin] = []
    _write_batches(draft_path, _noting(documents, origins))
    draft = Corpus.unsorted(draft_path)
    first, last = _first_and_last(draft)
    if len(first) == len(draft):
        draft_path.rename(folder / DOCUMENTS)
    else:
        _tell_repeats(draft, first, last, origins, problems)
        _write_batches(folder / DOCUMENTS, _last_of_each(draft, first, last))
        _write_batches(folder / REPEATS, _replaced(draft, last))
        draft_path.unlink()
    rows_by_id = np.empty(len(first), np.int32)
    rows_by_id[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    write_array(folder / "order.npy", rows_by_id)
    return WrittenCorpus(corpus_digest(Corpus.open(folder, "")), len(draft))


def _first_and_last(draft: Corpus) -> tuple[Rows, Rows]:
    """Return the first and the last row of each id, in the order of the ids."""
    parts = [_first_and_last_of(draft, *bounds) for bounds in pairwise(_bounds(draft))]
    return np.concatenate([first for first, _ in parts]), np.concatenate([last for _, last in parts])


def _bounds(draft: Corpus) -> list[str | None]:
    """Return ascending ids that divide the corpus into parts of about the size that is sorted at a time.

    The first and the last bound are None, which means no limit.
    """
    parts = max(1, -(-len(draft) // SORTED_IDS))
    each = max(1, len(draft) // (SAMPLED_IDS * parts))
    sample = sorted(identifier for _, ids, _ in draft.batches() for identifier in ids[::each].to_pylist())
    return [None, *(sample[number * len(sample) // parts] for number in range(1, parts)), None]


def _first_and_last_of(draft: Corpus, low: str | None, high: str | None) -> tuple[Rows, Rows]:
    """Return the first and the last row of each id from `low` (included) to `high` (excluded)."""
    rows, found = [np.empty(0, np.int32)], [pa.array([], pa.large_string())]
    for start, ids, _ in draft.batches():
        inside = np.ones(len(ids), np.bool_)
        if low is not None:
            inside &= np.asarray(pc.greater_equal(ids, low))
        if high is not None:
            inside &= np.asarray(pc.less(ids, high))
        rows.append(np.flatnonzero(inside).astype(np.int32) + np.int32(start))
        found.append(ids.filter(pa.array(inside)).cast(pa.large_string()))
    ids = pa.concat_arrays(found)
    order = pc.sort_indices(ids)  # stable: rows of one id stay in their order
    ids, in_order = ids.take(order), np.concatenate(rows)[np.asarray(order)]
    if not len(in_order):
        return in_order, in_order
    changes = np.asarray(pc.not_equal(ids[1:], ids[:-1]))
    return in_order[np.concatenate(([True], changes))], in_order[np.concatenate((changes, [True]))]


def _tell_repeats(draft: Corpus, first: Rows, last: Rows, origins: list[_Origin], problems: Problems) -> None:
    message = f"{origins[0].path}: {len(draft) - len(first):,} repeated rows merged"
    several = np.flatnonzero(first != last)
    several = several[np.argsort(first[several])]
    another = [i for i in several.tolist() if draft.text(first[i]) != draft.text(last[i])]
    if another:
        first_row, last_row = int(first[another[0]]), int(last[another[0]])
        path, line = _place(origins, last_row)
        earlier = where(*_place(origins, first_row), seen_from=path)
        message += (
            f"; {len(another):,} ids came with another text, and the last one counts "
            f"(such as {draft.id(first_row)!r}: {earlier} and {path.name}:{line})"
        )
    problems.notice(message)


def _last_of_each(draft: Corpus, first: Rows, last: Rows) -> Iterator[tuple[str, str]]:
    """Yield every id in the order of first occurrence, with its last text."""
    source = np.full(len(draft), -1, np.int32)
    source[first] = last
    for row, (identifier, text) in enumerate(draft):
        if source[row] >= 0:
            yield identifier, text if source[row] == row else draft.text(source[row])


def _replaced(draft: Corpus, last: Rows) -> Iterator[tuple[str, str]]:
    """Yield the rows whose id occurs again later."""
    counts = np.zeros(len(draft), dtype=bool)
    counts[last] = True
    for row, document in enumerate(draft):
        if not counts[row]:
            yield document


class _Origin(NamedTuple):
    """The file and line of a row. Those of the rows after it follow from it, up to the next origin."""

    row: int
    path: Path
    line: int


def _noting(documents: Iterable[DocumentRow], origins: list[_Origin]) -> Iterator[tuple[str, str]]:
    """Yield id and text of each document. Its origin is noted if it is not the line after the previous one."""
    path, line = None, 0
    for row, document in enumerate(documents):
        if document.path is not path or document.line != line + 1:
            origins.append(_Origin(row, document.path, document.line))
        path, line = document.path, document.line
        yield document.id, document.text


def _place(origins: list[_Origin], row: int) -> tuple[Path, int]:
    """Return file and line of a row."""
    origin = origins[bisect_right(origins, row, key=lambda origin: origin.row) - 1]
    return origin.path, origin.line + row - origin.row


def _write_batches(path: Path, documents: Iterable[tuple[str, str]]) -> None:
    """Stream ids and texts into an Arrow file."""
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
        for batch in record_batches(documents):
            writer.write_batch(batch)
