"""Cut texts into chunks at blanks and number the distinct chunks. Python code handles each distinct chunk only once."""

from __future__ import annotations

from dataclasses import dataclass

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
"""Number of bytes of a short chunk, which are compared as one integer."""

WORD_MASKS = np.array([256**size - 1 for size in range(WORD_BYTES + 1)], np.uint64)
"""Size of a short chunk -> the bits of its bytes in an integer."""

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
    chunks = pa.LargeStringArray.from_buffers(len(starts), offsets, pa.py_buffer(letters))
    numbers = _number(letters, starts, ends - starts, chunks)
    example = np.zeros(numbers.max(initial=-1) + 1, np.int64)
    example[numbers] = np.arange(len(numbers))
    bare = pc.ascii_trim(chunks.take(pa.array(example)), characters=EDGE_MARKS + " ").dictionary_encode()
    first_letters = np.cumsum(np.asarray(pc.binary_length(texts)) + 1)
    counts = np.diff(starts.searchsorted(first_letters, "right"), prepend=0)
    return Block(bare.dictionary, bare.indices.to_numpy().take(numbers), counts.astype(np.int32))


def _number(letters: bytes, starts: Offsets, sizes: Offsets, chunks: pa.Array) -> Ints:
    """Return a number for each chunk. Equal numbers are equal chunks.

    Most chunks are short. As integers they are compared in a fraction of the time that strings take.
    """
    is_short = sizes <= WORD_BYTES
    words = np.ndarray(len(letters) - WORD_BYTES + 1, "<u8", letters, strides=(1,))  # the integer from each byte on
    short = pa.array(words[starts[is_short]] & WORD_MASKS[sizes[is_short]]).dictionary_encode()
    long = chunks.filter(pa.array(~is_short)).dictionary_encode()
    numbers = np.empty(len(starts), np.int32)
    numbers[is_short] = short.indices
    numbers[~is_short] = np.asarray(long.indices) + len(short.dictionary)
    return numbers
