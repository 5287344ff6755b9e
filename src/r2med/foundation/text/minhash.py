"""MinHash over runs of words, in NumPy: find texts that may share most of their words without comparing all pairs.

Many texts are hashed together, byte by byte in arrays. A million texts take a minute or two, without compiled code of
our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

PERMUTATIONS = 128
BAND_PROBABILITY = 0.99
"""Minimum probability that two texts whose similarity equals the threshold share a band."""

_random = np.random.default_rng(0x52324D4544)
_BYTES = _random.integers(1, 1 << 63, 256, dtype=np.uint64) | np.uint64(1)
_POSITIONS = _random.integers(1, 1 << 63, 64, dtype=np.uint64) | np.uint64(1)
_FACTORS = _random.integers(1, 1 << 32, PERMUTATIONS, dtype=np.uint32) | np.uint32(1)
_SHIFTS = _random.integers(0, 1 << 32, PERMUTATIONS, dtype=np.uint32)
_MIXERS = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))

_END = "\x01"
"""A word that no text contains. Some of them follow a text that is shorter than a shingle, so that it has one too."""
_IN_WORDS = np.array([chr(byte).isalnum() or byte >= 128 or chr(byte) == _END for byte in range(256)])


@dataclass(frozen=True)
class Shingles:
    """Hashes of all runs of `size` words, one text after the other."""

    hashes: Hashes
    starts: npt.NDArray[np.int64]
    """Where the hashes of each text start. Every text has at least one hash."""
    is_short: npt.NDArray[np.bool_]
    """Which texts have fewer words than a shingle. Their hashes include the end of the text."""

    @classmethod
    def of(cls, texts: Sequence[str], size: int) -> Shingles:
        """Hash the words of texts and join them to shingles. Case and the characters between words are ignored."""
        tail = f" {_END}" * size + " "
        data = [(text.lower() + tail).encode("utf-8", "replace") for text in texts]
        text_ends = np.cumsum([len(each) for each in data])
        signs = np.frombuffer(b"".join(data), dtype=np.uint8)
        inside = _IN_WORDS[signs]
        begins = np.flatnonzero(inside & ~np.concatenate(([False], inside[:-1])))
        words = _word_hashes(signs[inside], np.diff(np.cumsum(inside)[begins] - 1, append=int(inside.sum())))
        text_of = np.searchsorted(text_ends, begins, side="right")
        whole = np.flatnonzero(text_of[: len(words) - size + 1] == text_of[size - 1 :])
        counts = np.bincount(text_of[whole], minlength=len(texts))  # of words, and one
        is_short = counts <= size
        with_end = np.arange(len(whole)) >= (np.cumsum(counts) - size)[text_of[whole]]
        whole = whole[~with_end | is_short[text_of[whole]]]
        hashes = sum((words[whole + place] * _POSITIONS[place] for place in range(size)), np.zeros(1, np.uint64))
        return cls(_mixed(hashes), np.searchsorted(text_of[whole], np.arange(len(texts))), is_short)

    def sets(self) -> list[set[int]]:
        """Return the set of hashes of each text."""
        return [set(part.tolist()) for part in np.split(self.hashes, self.starts[1:])]

    def runs(self) -> tuple[Hashes, npt.NDArray[np.int64]]:
        """Return the hashes of texts that are not too short, and the number of the text that each belongs to."""
        texts = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.hashes)))
        kept = ~self.is_short[texts]
        return self.hashes[kept], texts[kept]

    def signatures(self) -> npt.NDArray[np.uint32]:
        """Return the smallest hash of each text's shingles under each permutation, as permutations × texts."""
        values = (self.hashes >> np.uint64(32)).astype(np.uint32)
        rows = [
            np.minimum.reduceat(values * factor + shift, self.starts)
            for factor, shift in zip(_FACTORS, _SHIFTS, strict=True)
        ]
        return np.array(rows)

    def band_keys(self, rows: int) -> Hashes:
        """Return a key for each band of each text (bands × texts). Texts that share a key are a candidate pair."""
        bands = PERMUTATIONS // rows
        signatures = self.signatures()[: bands * rows].astype(np.uint64)
        parts = signatures.reshape(bands, rows, -1) * _POSITIONS[:rows, None]
        return _mixed(parts.sum(axis=1, dtype=np.uint64))


def _word_hashes(signs: npt.NDArray[np.uint8], lengths: npt.NDArray[np.int64]) -> Hashes:
    """Return a hash of each word: the sum of random numbers for its bytes, weighted by their positions."""
    starts = np.cumsum(lengths) - lengths
    places = np.arange(len(signs)) - np.repeat(starts, lengths)
    return _mixed(np.add.reduceat(_BYTES[signs] * _POSITIONS[places & 63], starts))


def _mixed(values: Hashes) -> Hashes:
    """Return the values mixed so that each bit depends on all others, like the last part of splitmix64."""
    for shift, factor in zip((30, 27), _MIXERS, strict=True):
        values = (values ^ (values >> np.uint64(shift))) * factor
    return values ^ (values >> np.uint64(31))


def rows_per_band(threshold: float) -> int:
    """Return the number of permutations in a band: the largest that rarely misses pairs of this similarity."""
    safe = [rows for rows in range(1, 17) if 1 - (1 - threshold**rows) ** (PERMUTATIONS // rows) >= BAND_PROBABILITY]
    return max(safe, default=1)


def jaccard(one: set[int], other: set[int]) -> float:
    """Return the Jaccard similarity of two sets of shingles."""
    shared = len(one & other)
    return shared / (len(one) + len(other) - shared)
