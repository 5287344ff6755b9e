"""Cut texts into chunks between blanks, and number the distinct ones: Python sees each of them once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

NEVER_AT_EDGE = '.,:;"'
"""Marks that are no part of a term at a chunk's edge, but may join inside one. Not the apostrophe (it may end a Hebrew
word), the underscore (it joins), nor * and # (keycap emoji)."""

BLANKED = bytes(32 if chr(c) in "\t\n\v\f\r()[]{}<>!?/\\|=+&%$@^~`-" else c + 32 * (65 <= c <= 90) for c in range(256))
"""Bytes of UTF-8 in lower case where they are ASCII, with blanks for what is outside of terms wherever it stands."""

BLANK = pa.scalar(" ", pa.large_string())

WORD = 8
"""Bytes compared at a time."""

LONG = 4 * WORD
"""Bytes from which on chunks are compared as strings: few are so long."""

OWN = np.array([256**size - 1 for size in range(WORD + 1)], np.uint64)
FILLED = ~OWN & np.uint64(0x2020202020202020)
"""Of eight bytes those that are a chunk's own, by its length, and blanks instead of the others: no chunk has one."""

_MARK = np.isin(np.arange(256), list(NEVER_AT_EDGE.encode()))

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """A few documents as chunks: the distinct ones, and for each position in the text which of them stands there."""

    distinct: pa.Array
    chunks: Ints
    chunks_per_document: Ints


def cut_chunks(texts: pa.Array) -> Block:
    """Return texts as chunks between white space, those of one analysis as one."""
    # Segmentation never joins across ASCII white space, so chunks can be told apart first, in NumPy and Arrow, and only
    # the distinct ones meet Python: bare of case and of marks that are never part of a term.
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), BLANK)[0].as_buffer().to_pybytes()
    letters = b" %b%b" % (joined.translate(BLANKED), b" " * WORD)
    blank = np.frombuffer(letters, np.uint8) == ord(" ")
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    offsets = pa.py_buffer(np.append(starts, len(letters)))
    written = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(letters))  # and blanks after each
    numbers = _number(letters, starts, ends, written)
    example = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    example[numbers] = np.arange(len(numbers))
    bare = pc.ascii_trim(written.take(pa.array(example)), characters=NEVER_AT_EDGE + " ").dictionary_encode()
    first_letters = np.cumsum(np.asarray(pc.binary_length(texts)) + 1)
    counts = np.diff(starts.searchsorted(first_letters, "right"), prepend=0)
    return Block(bare.dictionary, bare.indices.to_numpy().take(numbers), counts.astype(np.int32))


def _number(letters: bytes, starts: Offsets, ends: Offsets, written: pa.Array) -> Ints:
    """Return a number for each chunk: different chunks have different ones, equal chunks mostly the same.

    Integers of eight letters are encoded in a fraction of the time that strings take.
    """
    windows = np.ndarray(len(letters) - WORD + 1, "<u8", letters, strides=(1,))
    lengths = ends - starts - _MARK.take(np.frombuffer(letters, np.uint8).take(ends - 1))
    numbers = _encode(_words(windows, starts, lengths))
    longer = np.flatnonzero(lengths > WORD)
    for offset in range(WORD, LONG, WORD):
        words = _encode(_words(windows, starts.take(longer) + offset, lengths.take(longer) - offset))
        pairs = numbers.take(longer).astype(np.int64) << 32 | words
        numbers[longer] = _encode(pairs) + numbers.max(initial=-1) + 1
        longer = longer[lengths.take(longer) > offset + WORD]
    numbers[longer] = _encode(written.take(pa.array(longer))) + numbers.max(initial=-1) + 1
    return numbers


def _words(windows: npt.NDArray[np.uint64], starts: Offsets, lengths: Offsets) -> npt.NDArray[np.uint64]:
    sizes = np.minimum(lengths, WORD)
    return windows[starts] & OWN.take(sizes) | FILLED.take(sizes)


def _encode(values: npt.NDArray[Any] | pa.Array) -> Ints:
    return np.array(pa.array(values).dictionary_encode().indices)
