"""Find the written forms of index terms in texts, so that a page can mark matches without an analyser."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from r2med.foundation.text.analysers import analyser
from r2med.foundation.text.search_languages import ENGLISH
from r2med.systems.retrieve.bm25.chunks import BLANKED_BYTES, cut_chunks

Mask = npt.NDArray[np.bool_]

_BLANK = np.frombuffer(BLANKED_BYTES, dtype=np.uint8) == ord(" ")
BLANKS = "".join(map(chr, np.flatnonzero(_BLANK).tolist()))
"""The characters that separate chunks."""

_CONTINUES = 0x80  # the two high bits of a UTF-8 byte that continues a character


class WordForms:
    """Texts split into chunks at blanks. Each distinct chunk, without case and outer marks, is analysed once."""

    def __init__(self, texts: Sequence[str], language: str = ENGLISH) -> None:
        block = cut_chunks(pa.array(texts, pa.large_string()))
        self._texts = texts
        self._chunks = block.chunks
        self._bounds = np.concatenate(([0], np.cumsum(block.chunks_per_document)))
        self._written: list[str] = block.distinct.to_pylist()
        located_terms = analyser(language).located_terms
        self._located = [located_terms(chunk) for chunk in self._written]
        chunks_of: dict[str, list[int]] = {}
        for number, parts in enumerate(self._located):
            for _, _, term in parts:
                chunks_of.setdefault(term, []).append(number)
        self._chunks_of = chunks_of

    def matching(self, terms: Iterable[str]) -> Mask:
        """Return True for each distinct chunk that contains one of the terms."""
        matching = np.zeros(len(self._written), dtype=bool)
        for term in terms:
            matching[self._chunks_of.get(term, [])] = True
        return matching

    def forms(self, rows: Iterable[int], terms: Sequence[str]) -> dict[str, Any]:
        """Return the written forms of `terms` in some of the texts: chunk -> its terms.

        If a chunk is one word, it has the number of the term. Otherwise it has a list of parts, each with `start` and
        `stop` in UTF-16 units, as in JavaScript, and the number of its `term`.
        """
        number_of = {term: number for number, term in enumerate(terms)}
        present = np.zeros(len(self._written), dtype=bool)
        for row in rows:
            present[self._row(row)] = True
        chunks = np.flatnonzero(self.matching(terms) & present)
        return {self._written[chunk]: self._form(chunk, number_of) for chunk in chunks.tolist()}

    def densest(self, row: int, matching: Mask, width: int) -> tuple[int, int]:
        """Return the positions of the first and the last match in the window of this width with the most matches.

        It counts as `text.highlight.best_window` does, but by chunk, so that thousands of long texts are fast.
        """
        text = self._texts[row]
        starts = _starts(text)
        chunks = self._row(row)
        hit = matching[chunks]
        firsts = starts[hit]
        if not len(firsts):
            return 0, 0
        _, words, times = np.unique(chunks[hit], return_inverse=True, return_counts=True)
        total = np.concatenate(([0.0], (1 / times)[words])).cumsum()
        beyond = firsts.searchsorted(firsts + width)
        best = int((total[beyond] - total[:-1]).argmax())
        return int(firsts[best]), int(firsts[beyond[best] - 1])

    def _row(self, row: int) -> npt.NDArray[np.int32]:
        return self._chunks[self._bounds[row] : self._bounds[row + 1]]

    def _form(self, chunk: int, number_of: dict[str, int]) -> int | list[dict[str, int]]:
        written, located = self._written[chunk], self._located[chunk]
        parts: list[tuple[int, int, int]] = []
        end = 0
        for start, stop, term in located:  # Korean terms overlap, and a page marks each character once
            if term in number_of and (first := max(start, end)) < stop:
                parts.append((first, stop, number_of[term]))
                end = stop
        if parts[0][:2] == (0, len(written)):
            return parts[0][2]
        return [
            {"start": _units(written[:start]), "stop": _units(written[:stop]), "term": term}
            for start, stop, term in parts
        ]


def _starts(text: str) -> npt.NDArray[np.int64]:
    """Return the start positions of the chunks of a text, in characters."""
    units = np.frombuffer(text.encode(), dtype=np.uint8)
    blank = np.concatenate(([True], _BLANK[units]))
    starts = np.flatnonzero(blank[:-1] & ~blank[1:])
    if len(units) == len(text):
        return starts
    return np.cumsum((units & 0xC0) != _CONTINUES)[starts] - 1


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le")) // 2
