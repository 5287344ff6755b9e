"""Propose pairs of texts that may be copies, without comparing all pairs: by MinHash, and by shared runs of words.

MinHash proposes texts that are nearly equal. Texts of different lengths share few of its keys, even if one contains the
other. For these, a sample of the runs of words of the originals is looked up in every other text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from r2med.foundation.text.minhash import Hashes, Shingles

SAMPLE_MASK = np.uint64(3)
"""A run of words is looked up if these bits of its hash are 0: one of four."""
CANDIDATE_SHARE = 0.25
"""Share of the sampled runs of the shorter text from which two texts are compared."""
MIN_SAMPLED = 2
MAX_OWNERS = 20
"""Largest number of originals with a run of words that is looked up. More of them share a set phrase or a template."""

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BandTable:
    """The MinHash keys of originals, sorted in each band."""

    keys: Sequence[Hashes]
    owners: Sequence[Numbers]
    """The originals that the sorted keys belong to."""
    rows: int
    """Number of permutations in a band."""

    @classmethod
    def of(cls, keys: Hashes, owners: Numbers, rows: int) -> BandTable:
        """Sort the keys of originals (bands × originals)."""
        orders = [np.argsort(band, kind="stable") for band in keys]
        return cls(
            [band[order] for band, order in zip(keys, orders, strict=True)], [owners[each] for each in orders], rows
        )

    def pairs(self, shingles: Shingles) -> Iterator[tuple[int, int]]:
        """Yield (number of the text, original) of texts that may be nearly equal."""
        seen: set[tuple[int, int]] = set()
        for band, keys, owners in zip(shingles.band_keys(self.rows), self.keys, self.owners, strict=True):
            low, high = np.searchsorted(keys, band, "left"), np.searchsorted(keys, band, "right")
            for place in np.flatnonzero(high > low).tolist():
                for owner in owners[low[place] : high[place]].tolist():
                    if (place, owner) not in seen:
                        seen.add((place, owner))
                        yield place, owner


@dataclass(frozen=True)
class RunTable:
    """A sample of the runs of words of originals, sorted by hash."""

    hashes: Hashes
    owners: Numbers
    """Positions in `rows`."""
    sizes: Numbers
    """Number of sampled runs of each original."""
    rows: Numbers
    """The originals."""

    @classmethod
    def of(cls, sampled: Sequence[tuple[Hashes, Numbers]], rows: Numbers) -> RunTable:
        """Join the sampled runs of blocks of originals, whose texts are numbered as in `rows`."""
        hashes = np.concatenate([np.empty(0, np.uint64), *(each for each, _ in sampled)])
        owners = np.concatenate([np.empty(0, np.int64), *(each for _, each in sampled)])
        order = np.argsort(hashes, kind="stable")
        hashes, owners = hashes[order], owners[order]
        _, places, counts = np.unique(hashes, return_inverse=True, return_counts=True)
        rare = counts[places] <= MAX_OWNERS if len(hashes) else np.empty(0, bool)
        hashes, owners = hashes[rare], owners[rare]
        return cls(hashes, owners, np.bincount(owners, minlength=len(rows)), rows)

    def pairs(self, shingles: Shingles) -> Iterator[tuple[int, int]]:
        """Yield (number of the text, original) of texts that may share half of the shorter one."""
        hashes, texts = sampled_runs(shingles)
        places, owners, counts = self.counts(hashes, texts)
        shorter = np.minimum(np.bincount(texts, minlength=len(shingles.starts))[places], self.sizes[owners])
        enough = (counts >= CANDIDATE_SHARE * shorter) & (counts >= MIN_SAMPLED)
        yield from zip(places[enough].tolist(), self.rows[owners[enough]].tolist(), strict=True)

    def counts(self, hashes: Hashes, texts: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Return the pairs of a text and an original that share runs: text, position of the original, number of runs.

        `hashes` are the distinct runs of texts, and `texts` the number of the text that each belongs to.
        """
        low, high = np.searchsorted(self.hashes, hashes, "left"), np.searchsorted(self.hashes, hashes, "right")
        times = high - low
        found = np.repeat(low - np.concatenate(([0], np.cumsum(times)[:-1])), times) + np.arange(times.sum())
        size = max(1, len(self.rows))
        pairs, counts = np.unique(
            np.repeat(texts, times) * size + self.owners[found.astype(np.int64)], return_counts=True
        )
        return pairs // size, pairs % size, counts


def sampled_runs(shingles: Shingles) -> tuple[Hashes, Numbers]:
    """Return the distinct sampled runs of words of texts, and the number of the text that each belongs to."""
    hashes, texts = shingles.runs()
    chosen = hashes & SAMPLE_MASK == 0
    return distinct_runs(hashes[chosen], texts[chosen])


def distinct_runs(hashes: Hashes, texts: Numbers) -> tuple[Hashes, Numbers]:
    """Return each run of words of each text once, and the number of the text that it belongs to."""
    order = np.lexsort((hashes, texts))
    hashes, texts = hashes[order], texts[order]
    new = np.concatenate(([True], (np.diff(hashes) != 0) | (np.diff(texts) != 0)))[: len(hashes)]
    return hashes[new], texts[new]


def sharing(keys: Hashes) -> Numbers:
    """Return one number for every row whose key occurred before: the row in the upper half, the key's first row below.

    The keys are those of one band, in the order of the rows.
    """
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(keys)]
    leaders = order[np.maximum.accumulate(np.where(first, np.arange(len(keys)), 0))]
    return order[~first] << 32 | leaders[~first]
