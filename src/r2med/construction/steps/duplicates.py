"""Leave out chunks that repeat another: the same text, or a text that shares most of its runs of words.

MinHash proposes pairs, and the texts themselves decide. The first chunk of each group of duplicates stays. The keys of
bands are on disk and are sorted one band at a time, and texts are read again from their files. Memory is therefore a
few dozen bytes per chunk.
"""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from r2med.construction.items import PageChunk, Rejected
from r2med.construction.step import Step, StepWork, Streams
from r2med.foundation.engine.threads import map_threads
from r2med.foundation.text.minhash import PERMUTATIONS, Shingles, band_keys, jaccard, rows_per_band

BLOCK_CHUNKS = 1024
"""Number of chunks that are hashed together. Their arrays fit in a core's cache."""

RowPairs = npt.NDArray[np.int64]
"""Pairs of a later row and an earlier row, as two columns."""


class DropDuplicates(Step, kind="build"):
    """Leave out chunks that repeat another chunk exactly or nearly."""

    reads = ("chunks",)
    writes = "chunks"

    name: str = "drop-duplicates"
    threshold: float = Field(
        0.8, ge=0.3, le=1, description="Share of common shingles from which a chunk counts as a duplicate."
    )
    words: int = Field(3, ge=1, le=20, description="Number of words in a shingle.")

    def run(self, streams: Streams, work: StepWork) -> Iterator[PageChunk | Rejected]:
        """Yield the chunks that stay, with the pages of their copies, and the rejected chunks with what they repeat."""
        with ExitStack() as files:
            rows = _Rows(streams.files.get("chunks", ()), files)
            repeated = self._repeated(rows)
            pages: dict[int, list[str]] = {}
            for row, (kept, _) in repeated.items():
                copy = rows.fields(row)
                pages.setdefault(kept, []).extend((copy["page"], copy.get("url", "")))
            for row, chunk in enumerate(streams.chunks()):
                if row in repeated:
                    kept, likeness = repeated[row]
                    reason = "near duplicate" if likeness else "exact duplicate"
                    note = f"of {rows.fields(kept)['id']}" + (f", {likeness:.3f} of their shingles" if likeness else "")
                    yield Rejected.of(chunk, reason, note)
                else:
                    copies = [page for page in pages.get(row, ()) if page not in ("", chunk.page, chunk.url)]
                    yield chunk.model_copy(update={"copies": tuple(dict.fromkeys(copies))}) if copies else chunk

    def _repeated(self, rows: _Rows) -> Mapping[int, tuple[int, float]]:
        """Return the rows to leave out, each with the row that stays and their similarity, or 0 for equal texts."""
        repeated: dict[int, tuple[int, float]] = {}
        for block in _blocks(self._pairs(rows)):
            texts = {int(row): rows.fields(int(row))["text"] for row in np.unique(block)}
            shingles = dict(zip(texts, Shingles.of(list(texts.values()), self.words).sets(), strict=True))
            for row, earlier in block.tolist():
                if row in repeated:
                    continue
                kept = earlier
                if earlier in repeated:  # the earlier row was left out for another, which may be less like this one
                    kept = repeated[earlier][0]
                    if kept not in texts:
                        texts[kept] = rows.fields(kept)["text"]
                        [shingles[kept]] = Shingles.of([texts[kept]], self.words).sets()
                if texts[row].split() == texts[kept].split():
                    repeated[row] = kept, 0.0
                elif (likeness := jaccard(shingles[row], shingles[kept])) >= self.threshold:
                    repeated[row] = kept, likeness
        return repeated

    def _pairs(self, rows: _Rows) -> RowPairs:
        """Return the pairs of rows that share a band, in the order of the later row."""
        per_band = rows_per_band(self.threshold)
        bands = PERMUTATIONS // per_band
        pairs = np.empty(0, dtype=np.int64)
        with TemporaryDirectory() as scratch, ExitStack() as stack:
            paths = [Path(scratch) / str(band) for band in range(bands)]
            files = [stack.enter_context(path.open("wb")) for path in paths]
            for keys in map_threads(lambda texts: band_keys(texts, self.words, per_band), rows.text_blocks()):
                for file, band in zip(files, keys, strict=True):
                    file.write(band.tobytes())
            for file, path in zip(files, paths, strict=True):
                file.close()
                pairs = np.union1d(pairs, _sharing(np.fromfile(path, dtype=np.uint64)))
        return np.column_stack((pairs >> 32, pairs & 0xFFFFFFFF))


def _sharing(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return for every row whose key came before one number: the row in the upper half, the key's first row below."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(keys)]
    leaders = order[np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))]
    return order[~first] << 32 | leaders[~first]


def _blocks(pairs: RowPairs) -> Iterator[RowPairs]:
    return (pairs[start : start + BLOCK_CHUNKS] for start in range(0, len(pairs), BLOCK_CHUNKS))


class _Rows:
    """The lines of a stream by number. Only the start of each line is in memory; its content is read on demand."""

    def __init__(self, paths: tuple[Path, ...], files: ExitStack) -> None:
        self._files = [files.enter_context(path.open("rb")) for path in paths]
        self._paths = paths
        self._starts: list[npt.NDArray[np.int64]] = []

    def text_blocks(self) -> Iterator[list[str]]:
        """Yield the texts in blocks, and record where each line starts."""
        lines = self._lines()
        while block := [json.loads(line)["text"] for line in itertools.islice(lines, BLOCK_CHUNKS)]:
            yield block

    def _lines(self) -> Iterator[bytes]:
        for path in self._paths:
            sizes = array("q", [0])
            with path.open("rb") as file:
                for line in file:
                    sizes.append(len(line))
                    yield line
            self._starts.append(np.cumsum(sizes)[:-1])

    def fields(self, row: int) -> dict[str, Any]:
        """Return the fields of one row."""
        for file, starts in zip(self._files, self._starts, strict=True):
            if row < len(starts):
                file.seek(starts[row])
                fields: dict[str, Any] = json.loads(file.readline())
                return fields
            row -= len(starts)
        raise IndexError(row)
