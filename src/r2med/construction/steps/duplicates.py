"""Leave out chunks that repeat another: the same text, or a text that shares most of its runs of words.

The first chunk of each group of duplicates stays. Texts are read again from their files, so memory is a few dozen bytes
per chunk.
"""

from __future__ import annotations

import itertools
import json
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import Field

from r2med.construction.items import PageChunk, Rejected
from r2med.construction.step import Step, StepWork, Streams
from r2med.data.text_copies import THRESHOLD, find_copies, spaced

BLOCK_CHUNKS = 1024
"""Number of chunks that are hashed together. Their arrays fit in a core's cache."""


class DropDuplicates(Step, kind="build"):
    """Leave out chunks that repeat another chunk exactly or nearly."""

    reads = ("chunks",)
    writes = "chunks"

    name: str = "drop-duplicates"
    threshold: float = Field(
        THRESHOLD, ge=0.3, le=1, description="Share of common shingles from which a chunk counts as a duplicate."
    )
    words: int = Field(3, ge=1, le=20, description="Number of words in a shingle.")

    def run(self, streams: Streams, work: StepWork) -> Iterator[PageChunk | Rejected]:
        """Yield the chunks that stay, with the pages of their copies, and the rejected chunks with what they repeat."""
        with ExitStack() as files:
            rows = _Rows(streams.files.get("chunks", ()), files)
            repeats = find_copies(
                rows, kinds=("equal", "near"), form=spaced, threshold=self.threshold, words=self.words
            )
            copies = {copy.row: copy for copy in repeats.found}
            pages: dict[int, list[str]] = {}
            for copy in copies.values():
                fields = rows.fields(copy.row)
                pages.setdefault(copy.original, []).extend((fields["page"], fields.get("url", "")))
            for row, chunk in enumerate(streams.chunks()):
                if row in copies:
                    copy = copies[row]
                    near = f", {copy.share:.3f} of their shingles" if copy.kind == "near" else ""
                    reason = "near duplicate" if near else "exact duplicate"
                    yield Rejected.of(chunk, reason, f"of {rows.fields(copy.original)['id']}{near}")
                else:
                    others = [page for page in pages.get(row, ()) if page not in ("", chunk.page, chunk.url)]
                    yield chunk.model_copy(update={"copies": tuple(dict.fromkeys(others))}) if others else chunk


class _Rows:
    """The lines of a stream by number. Only the start of each line is in memory; its content is read on demand."""

    def __init__(self, paths: tuple[Path, ...], files: ExitStack) -> None:
        self._files = [files.enter_context(path.open("rb")) for path in paths]
        self._paths = paths
        self._starts: list[npt.NDArray[np.int64]] = []

    def text_blocks(self) -> Iterator[tuple[int, Sequence[str]]]:
        """Yield (first row, texts) of blocks, and record where each line starts."""
        lines, start = self._lines(), 0
        while block := [json.loads(line)["text"] for line in itertools.islice(lines, BLOCK_CHUNKS)]:
            yield start, block
            start += len(block)

    def texts(self, rows: Sequence[int]) -> Sequence[str]:
        """Return the texts of rows."""
        return [self.fields(row)["text"] for row in rows]

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
