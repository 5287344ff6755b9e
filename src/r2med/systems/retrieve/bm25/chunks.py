"""Cut texts into chunks at blanks and number the distinct chunks. Python code handles each distinct chunk only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

EDGE_MARKS = '.,:;"'
"""Characters that are never part of a term at the edge of a chunk, but may join inside one.

Not in the list: the apostrophe (it may end a Hebrew word), the underscore (it joins), and * and # (keycap emoji).
"""

BLANKED_BYTES = bytes(
    32 if chr(c) in "\t\n\v\f\r()[]{}<>!?/\\|=+&%$@^~`-" else c + 32 * (65 <= c <= 90) for c in range(256)
)
"""Translation table for UTF-8 bytes: ASCII letters become lower case, and characters outside of terms become blanks."""

BLANK = pa.scalar(" ", pa.large_string())

WORD_BYTES = 8
"""Number of bytes compared at a time."""

LONG_CHUNK_BYTES = 4 * WORD_BYTES
"""Chunks longer than this number of bytes are compared as strings. There are few of them."""

OWN_BYTES_MASKS = np.array([256**size - 1 for size in range(WORD_BYTES + 1)], np.uint64)
BLANK_FILLS = ~OWN_BYTES_MASKS & np.uint64(0x2020202020202020)
"""Masks for the eight bytes of a word, by the length of the chunk.

The first keeps the chunk's own bytes. The second fills the other bytes with blanks, which no chunk contains.
"""

_IS_EDGE_MARK = np.isin(np.arange(256), list(EDGE_MARKS.encode()))

Ints = npt.NDArray[np.int32]
Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """A few documents as chunks: the distinct chunks, and the number of the chunk at each position in the text."""

    distinct: pa.Array
    chunks: Ints
    chunks_per_document: Ints


def cut_chunks(texts: pa.Array) -> Block:
    """Return the texts as chunks between white space. Chunks with the same analysis get the same number."""
    # Segmentation never joins across ASCII white space. So NumPy and Arrow find the distinct chunks first, and Python
    # sees only those, in lower case and without characters that are never part of a term.
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), BLANK)[0].as_buffer().to_pybytes()
    letters = b" %b%b" % (joined.translate(BLANKED_BYTES), b" " * WORD_BYTES)
    blank = np.frombuffer(letters, np.uint8) == ord(" ")
    edges = np.flatnonzero(blank[1:] != blank[:-1]) + 1
    starts, ends = edges[::2], edges[1::2]
    offsets = pa.py_buffer(np.append(starts, len(letters)))
    # Each chunk has blanks after it.
    written = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(letters))
    numbers = _number(letters, starts, ends, written)
    example = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    example[numbers] = np.arange(len(numbers))
    bare = pc.ascii_trim(written.take(pa.array(example)), characters=EDGE_MARKS + " ").dictionary_encode()
    first_letters = np.cumsum(np.asarray(pc.binary_length(texts)) + 1)
    counts = np.diff(starts.searchsorted(first_letters, "right"), prepend=0)
    return Block(bare.dictionary, bare.indices.to_numpy().take(numbers), counts.astype(np.int32))


def _number(letters: bytes, starts: Offsets, ends: Offsets, written: pa.Array) -> Ints:
    """Return a number for each chunk. Different chunks have different numbers, and equal chunks mostly the same.

    Integers of eight letters are encoded in a fraction of the time that strings take.
    """
    windows = np.ndarray(len(letters) - WORD_BYTES + 1, "<u8", letters, strides=(1,))
    lengths = ends - starts - _IS_EDGE_MARK.take(np.frombuffer(letters, np.uint8).take(ends - 1))
    numbers = _encode(_words(windows, starts, lengths))
    longer = np.flatnonzero(lengths > WORD_BYTES)
    for offset in range(WORD_BYTES, LONG_CHUNK_BYTES, WORD_BYTES):
        words = _encode(_words(windows, starts.take(longer) + offset, lengths.take(longer) - offset))
        pairs = numbers.take(longer).astype(np.int64) << 32 | words
        numbers[longer] = _encode(pairs) + numbers.max(initial=-1) + 1
        longer = longer[lengths.take(longer) > offset + WORD_BYTES]
    numbers[longer] = _encode(written.take(pa.array(longer))) + numbers.max(initial=-1) + 1
    return numbers


def _words(windows: npt.NDArray[np.uint64], starts: Offsets, lengths: Offsets) -> npt.NDArray[np.uint64]:
    sizes = np.minimum(lengths, WORD_BYTES)
    return windows[starts] & OWN_BYTES_MASKS.take(sizes) | BLANK_FILLS.take(sizes)


def _encode(values: npt.NDArray[Any] | pa.Array) -> Ints:
    return np.array(pa.array(values).dictionary_encode().indices)
